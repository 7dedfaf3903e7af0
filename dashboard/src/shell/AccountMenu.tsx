import { messageOf, useMe } from "../api";
import { session } from "../api/session";
import { signOut } from "../api/sign_in";
import { Button, IconButton, Menu, useToast } from "../components";
import { setPreferences, usePreferences } from "./preferences";
import styles from "./Shell.module.css";

/** The person, the theme, the time zone and the way out. */
export function AccountMenu({ onHelp }: { onHelp: () => void }) {
  const me = useMe();
  const { zone, density } = usePreferences();
  const toast = useToast();
  return (
    <Menu
      label={`Account of ${me.name}`}
      trigger={
        <Button variant="quiet" icon="user">
          <span className={styles.account}>{me.name}</span>
        </Button>
      }
      items={[
        {
          id: "zone",
          label: zone === "utc" ? "Show local times" : "Show times in UTC",
          onAction: () => setPreferences({ zone: zone === "utc" ? "local" : "utc" }),
        },
        {
          id: "density",
          label: density === "dense" ? "Comfortable rows" : "Dense rows",
          onAction: () =>
            setPreferences({ density: density === "dense" ? "comfortable" : "dense" }),
        },
        { id: "keys", label: "Keyboard shortcuts", onAction: onHelp },
        {
          id: "out",
          label: "Sign out",
          ...(session.token !== null && { detail: "This tab forgets the token" }),
          onAction: () => void signOut().catch((error) => toast.error(messageOf(error))),
        },
      ]}
    />
  );
}

/** Switches between light and dark. */
export function ThemeSwitch() {
  const { theme } = usePreferences();
  const isDark =
    theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <IconButton
      icon={isDark ? "sun" : "moon"}
      label={isDark ? "Light theme" : "Dark theme"}
      onPress={() => setPreferences({ theme: isDark ? "light" : "dark" })}
    />
  );
}
