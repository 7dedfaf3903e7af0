import { useState } from "react";
import { PageHeader, Select, ToastProvider } from "../../components";
import { ActionSection } from "./ActionSection";
import { CodeSection } from "./CodeSection";
import { FieldSection } from "./FieldSection";
import { FoundationSection } from "./FoundationSection";
import styles from "./Gallery.module.css";
import { OverlaySection } from "./OverlaySection";
import { StateSection } from "./StateSection";
import { TableSection } from "./TableSection";

type ThemeChoice = "system" | "light" | "dark";

/** Every component in every state, for those who build screens. Only in development. */
export default function Gallery() {
  const [theme, setTheme] = useState<ThemeChoice>(
    () => (document.documentElement.dataset.theme as ThemeChoice | undefined) ?? "system",
  );
  const choose = (choice: ThemeChoice) => {
    setTheme(choice);
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
  };
  return (
    <ToastProvider>
      <div className={styles.page}>
        <PageHeader
          title="Gallery"
          subtitle="Every component of the dashboard, in every state."
          actions={
            <Select
              label="Theme"
              hideLabel
              value={theme}
              onChange={choose}
              options={[
                { id: "system", label: "System theme", icon: "half-moon" },
                { id: "light", label: "Light", icon: "sun" },
                { id: "dark", label: "Dark", icon: "moon" },
              ]}
            />
          }
        />
        <FoundationSection />
        <ActionSection />
        <StateSection />
        <TableSection />
        <FieldSection />
        <OverlaySection />
        <CodeSection />
      </div>
    </ToastProvider>
  );
}
