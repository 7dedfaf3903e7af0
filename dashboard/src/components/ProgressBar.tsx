import { cx } from "./cx";
import styles from "./ProgressBar.module.css";
import type { Tone } from "./status";
import { toneClass } from "./tones";

export interface ProgressBarProps {
  /** null: the work moves, but nobody knows how far it is. */
  percent: number | null;
  /** The name for screen readers. */
  label: string;
  tone?: Tone;
  /** Show the number beside the bar. */
  showValue?: boolean;
  /** As wide as its place, where it is the main thing. */
  wide?: boolean;
}

export function ProgressBar({
  percent,
  label,
  tone = "running",
  showValue = true,
  wide,
}: ProgressBarProps) {
  const value = percent === null ? null : Math.min(100, Math.max(0, percent));
  const known = value === null ? {} : { "aria-valuenow": Math.round(value) };
  return (
    <span className={cx(styles.progress, wide && styles.wide, toneClass(tone))}>
      <span
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        {...known}
        className={styles.track}
      >
        <span
          className={value === null ? styles.unknown : styles.fill}
          style={value === null ? undefined : { width: `${value}%` }}
        />
      </span>
      {showValue && (
        <span className={styles.value} aria-hidden="true">
          {value === null ? "–" : `${Math.floor(value)}%`}
        </span>
      )}
    </span>
  );
}
