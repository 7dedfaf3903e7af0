import { useState } from "react";
import { count } from "../format";
import { cx } from "./cx";
import styles from "./JsonView.module.css";
import { jsonKind, scalarText } from "./jsonValue";

/** Texts longer than the first step are cut; each press shows up to the next. */
const STEPS = [300, 20_000, Number.POSITIVE_INFINITY];

/** A string, number, boolean or null with its exact digits. */
export function JsonScalar({ value }: { value: unknown }) {
  const [step, setStep] = useState(0);
  const kind = jsonKind(value);
  const text = scalarText(value);
  const length = STEPS[step] ?? Number.POSITIVE_INFINITY;
  const isCut = text.length > length;
  return (
    <span className={styles.scalar}>
      <bdi className={cx(styles.value, styles[kind])}>{isCut ? text.slice(0, length) : text}</bdi>
      {text.length > (STEPS[0] ?? 0) && (
        <button
          type="button"
          className={styles.more}
          onClick={() => setStep(isCut ? step + 1 : 0)}
          aria-expanded={!isCut}
        >
          {isCut ? `… ${count(text.length - length)} more` : "less"}
        </button>
      )}
    </span>
  );
}
