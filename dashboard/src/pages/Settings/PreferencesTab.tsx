import { useMe } from "../../api";
import { Badge, Card, KeyValue, Select } from "../../components";
import { type Preferences, setPreferences, usePreferences } from "../../shell/preferences";
import styles from "./Settings.module.css";

/** What this person sees and how, in this browser. */
export function PreferencesTab() {
  const { theme, zone, density } = usePreferences();
  const me = useMe();
  return (
    <div className={styles.columns}>
      <Card title="In this browser">
        <div className={styles.form}>
          <Select
            label="Theme"
            options={[
              { id: "system", label: "As the system" },
              { id: "light", label: "Light" },
              { id: "dark", label: "Dark" },
            ]}
            value={theme}
            onChange={(id) => setPreferences({ theme: id as Preferences["theme"] })}
          />
          <Select
            label="Times"
            options={[
              { id: "local", label: "In the browser's time zone" },
              { id: "utc", label: "In UTC" },
            ]}
            value={zone}
            onChange={(id) => setPreferences({ zone: id as Preferences["zone"] })}
          />
          <Select
            label="Rows"
            options={[
              { id: "comfortable", label: "Comfortable" },
              { id: "dense", label: "Dense" },
            ]}
            value={density}
            onChange={(id) => setPreferences({ density: id as Preferences["density"] })}
          />
        </div>
      </Card>
      <Card title="You">
        <KeyValue
          items={[
            { name: "Name", value: me.name },
            { name: "Kind", value: me.kind },
            {
              name: "Permissions",
              value: (
                <span className={styles.words}>
                  {Object.entries(me.permissions).map(([name, terms]) => (
                    <Badge key={name}>
                      {name}
                      {terms.some((term) => !term.owner && !term.workspace && !term.lanes)
                        ? ""
                        : " (some)"}
                    </Badge>
                  ))}
                </span>
              ),
            },
          ]}
        />
      </Card>
    </div>
  );
}
