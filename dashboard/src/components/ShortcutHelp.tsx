import { Kbd } from "./Kbd";
import styles from "./ShortcutHelp.module.css";

export interface Shortcut {
  /** Keys in a row: "g o". Alternatives are separate entries. */
  keys: readonly string[];
  label: string;
}

export interface ShortcutGroup {
  title: string;
  shortcuts: readonly Shortcut[];
}

/** The keyboard map: the content of the help dialog. */
export function ShortcutHelp({ groups }: { groups: readonly ShortcutGroup[] }) {
  return (
    <div className={styles.groups}>
      {groups.map((group) => (
        <section key={group.title}>
          <h3 className={styles.title}>{group.title}</h3>
          <dl className={styles.list}>
            {group.shortcuts.map((shortcut) => (
              <div key={shortcut.label} className={styles.row}>
                <dt>{shortcut.label}</dt>
                <dd>
                  {shortcut.keys.map((keys) => (
                    <Kbd key={keys} keys={keys} />
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}
