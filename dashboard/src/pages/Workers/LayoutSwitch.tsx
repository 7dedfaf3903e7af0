import { Segments } from "../../components";
import { href, useUrlValue } from "../../shell/url";

/** Hosts as cards, or all processes as one dense list. */
export function LayoutSwitch() {
  const [layout] = useUrlValue("layout");
  return (
    <Segments
      label="Layout"
      items={[
        { href: "/workers", label: "Hosts", isCurrent: layout !== "processes" },
        {
          href: href("/workers", { layout: "processes" }),
          label: "Processes",
          isCurrent: layout === "processes",
        },
      ]}
    />
  );
}
