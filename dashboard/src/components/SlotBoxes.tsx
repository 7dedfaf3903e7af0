import styles from "./SlotBoxes.module.css";
import { slotLayout, slotWords } from "./slots";

export interface SlotBoxesProps {
  used: number;
  /** null: the lane has no limit. */
  total: number | null;
}

export function SlotBoxes({ used, total }: SlotBoxesProps) {
  const layout = slotLayout(used, total);
  return (
    <span className={styles.slots}>
      <span className="visually-hidden">{slotWords(used, total)}</span>
      <span className={styles.picture} aria-hidden="true" title={slotWords(used, total)}>
        <span className={styles.count}>
          {used}
          <span className={styles.total}>{total === null ? "/∞" : `/${total}`}</span>
        </span>
        {layout.kind === "boxes" && (
          <span className={styles.boxes}>
            {boxes(layout.used, "used")}
            {boxes(layout.over, "over")}
            {boxes(layout.free, "free")}
          </span>
        )}
        {layout.kind === "bar" && (
          <span className={styles.bar}>
            <span
              className={layout.over ? styles.fillOver : styles.fill}
              style={{ width: `${layout.percent}%` }}
            />
          </span>
        )}
      </span>
    </span>
  );
}

function boxes(count: number, kind: "used" | "over" | "free") {
  const keys = Array.from({ length: count }, (_, at) => `${kind}${at}`);
  return keys.map((key) => <i key={key} className={styles[kind]} />);
}
