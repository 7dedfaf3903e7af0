import { cx } from "./cx";
import styles from "./Sparkline.module.css";
import { sparkShape } from "./spark";
import type { Tone } from "./status";
import { toneClass } from "./tones";

export interface SparklineProps {
  /** Oldest first; null is a gap. */
  values: readonly (number | null)[];
  /** What the line shows, in words: "Done per minute, last 30 min: 41 now, 60 at most". */
  label: string;
  width?: number;
  height?: number;
  tone?: Tone;
}

export function Sparkline({
  values,
  label,
  width = 96,
  height = 24,
  tone = "accent",
}: SparklineProps) {
  const { line, area } = sparkShape(values, width, height);
  const isFlat = values.every((value) => !value);
  return (
    <svg
      role="img"
      aria-label={label}
      className={cx(styles.spark, toneClass(tone))}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
    >
      <path className={styles.base} d={`M0 ${height - 0.5}H${width}`} />
      {!isFlat && <path className={styles.area} d={area} />}
      {!isFlat && <path className={styles.line} d={line} />}
    </svg>
  );
}
