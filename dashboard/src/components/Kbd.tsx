import styles from "./Kbd.module.css";

/** One key; `Kbd keys="g o"` shows two in a row. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className={styles.keys}>
      {keys.split(" ").map((key) => (
        <kbd key={key} className={styles.key}>
          {key}
        </kbd>
      ))}
    </span>
  );
}
