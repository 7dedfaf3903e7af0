import { useMemo } from "react";
import { plural } from "../format";
import { Icon, type IconName } from "./Icon";
import styles from "./JsonDiff.module.css";
import { JsonScalar } from "./JsonScalar";
import { type Change, jsonDiff } from "./jsonDiff";
import { childCount, jsonKind, jsonText } from "./jsonValue";

export interface JsonDiffProps {
  before: unknown;
  after: unknown;
  /** Said when nothing differs. */
  sameWords?: string;
}

const looks: Record<Change["kind"], { icon: IconName; word: string }> = {
  added: { icon: "plus", word: "Added" },
  removed: { icon: "minus", word: "Removed" },
  changed: { icon: "edit", word: "Changed" },
};

export function JsonDiff({ before, after, sameWords = "No differences" }: JsonDiffProps) {
  const { changes, isCut } = useMemo(() => jsonDiff(before, after), [before, after]);
  if (changes.length === 0) return <p className={styles.same}>{sameWords}</p>;
  return (
    <ul className={styles.list}>
      {changes.map((change) => (
        <li key={`${change.kind}${change.path}`} className={styles.change} data-kind={change.kind}>
          <Icon name={looks[change.kind].icon} size={13} label={looks[change.kind].word} />
          <bdi className={styles.path}>{change.path}</bdi>
          <span className={styles.values}>
            {"before" in change && (
              <del className={styles.before}>
                <DiffValue value={change.before} />
              </del>
            )}
            {change.kind === "changed" && (
              <Icon name="arrow-right" size={12} label="to" className={styles.arrow} />
            )}
            {"after" in change && (
              <ins className={styles.after}>
                <DiffValue value={change.after} />
              </ins>
            )}
          </span>
        </li>
      ))}
      {isCut && <li className={styles.same}>More differences are not shown.</li>}
    </ul>
  );
}

function DiffValue({ value }: { value: unknown }) {
  const kind = jsonKind(value);
  if (kind !== "object" && kind !== "array") return <JsonScalar value={value} />;
  const size = childCount(value);
  if (size > 20) {
    const words = plural(size, kind === "array" ? "item" : "key");
    return <span>{kind === "array" ? `[${words}]` : `{${words}}`}</span>;
  }
  return <JsonBranch value={value} />;
}

function JsonBranch({ value }: { value: unknown }) {
  const text = jsonText(value, 1).replaceAll(/\n\s*/g, " ");
  return <span>{text.length > 400 ? `${text.slice(0, 400)}…` : text}</span>;
}
