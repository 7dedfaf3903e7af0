import { cx } from "./cx";
import styles from "./StateBar.module.css";
import { stateWords } from "./states";
import { statusLook } from "./status";
import { toneClass } from "./tones";

export interface StateBarProps {
  /** The number of jobs by status, in the order in which they are shown. */
  counts: Readonly<Record<string, number>>;
}

/** Jobs that have not ended, where their states are not known. */
export const UNFINISHED = "unfinished";

/** How many jobs are in which state, as a bar; its words are for readers and on hover. */
export function StateBar({ counts }: StateBarProps) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const words = stateWords(counts);
  return (
    <span className={styles.bar} role="img" aria-label={words} title={words}>
      {parts.map(([status, count]) => (
        <span
          key={status}
          className={cx(
            styles.part,
            status === UNFINISHED ? styles.open : toneClass(statusLook(status).tone),
          )}
          style={{ flexGrow: count }}
        />
      ))}
    </span>
  );
}
