import { CopyButton, JsonDiff, JsonView, KeyValue, type KeyValueItem } from "../../components";
import { Time } from "../../time";
import styles from "./Audit.module.css";
import type { AuditEntry } from "./AuditTable";

/** Everything that is known of an entry: what changed, by which request, from where. */
export function AuditDetail({ entry }: { entry: AuditEntry }) {
  const { before, after } = entry;
  const items: KeyValueItem[] = [
    { name: "Time", value: <Time at={entry.at} full /> },
    { name: "Action", value: <code>{entry.action}</code> },
  ];
  if (entry.name !== null) items.push({ name: "Target", value: <Copied text={entry.name} /> });
  if (entry.workspace !== null) items.push({ name: "Workspace", value: entry.workspace });
  if (entry.request_id !== null) {
    items.push({ name: "Request", value: <Copied text={entry.request_id} /> });
  }
  if (entry.address !== null) items.push({ name: "Address", value: entry.address });
  if (entry.claimed.length > 0) {
    items.push({ name: "Not verified", value: entry.claimed.join(", ") });
  }
  return (
    <div className={styles.detail}>
      <KeyValue items={items} />
      <div className={styles.values}>
        {before !== null && after !== null ? (
          <JsonDiff before={before} after={after} sameWords="The values were the same before." />
        ) : (
          (before ?? after) !== null && (
            <section>
              <p className={styles.valuesTitle}>{after === null ? "Removed" : "After"}</p>
              <JsonView value={before ?? after} label={after === null ? "Removed" : "After"} />
            </section>
          )
        )}
      </div>
    </div>
  );
}

function Copied({ text }: { text: string }) {
  return (
    <span className={styles.copied}>
      <code>{text}</code>
      <CopyButton text={text} />
    </span>
  );
}
