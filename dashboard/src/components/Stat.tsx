import type { ReactNode } from "react";
import { Link } from "wouter";
import { cx } from "./cx";
import { useReach } from "./reach";
import styles from "./Stat.module.css";
import type { Tone } from "./status";
import { toneClass } from "./tones";

export interface StatProps {
  label: string;
  value: ReactNode;
  /** A smaller word after the number, such as a unit. */
  unit?: string;
  /** A line below: a trend, a limit. */
  detail?: ReactNode;
  /** The list that the number counts. */
  href?: string;
  tone?: Tone;
}

export function Stat({ label, value, unit, detail, href, tone }: StatProps) {
  const isReachable = useReach(href ?? "/");
  const content = (
    <>
      <span className={styles.label}>{label}</span>
      <span className={styles.value}>
        {value}
        {unit && <span className={styles.unit}>{unit}</span>}
      </span>
      {detail && <span className={styles.detail}>{detail}</span>}
    </>
  );
  const look = cx(styles.stat, tone && styles.toned, tone && toneClass(tone));
  return href && isReachable ? (
    <Link href={href} className={cx(look, styles.link)}>
      {content}
    </Link>
  ) : (
    <div className={look}>{content}</div>
  );
}

/** Stats side by side, divided by lines. */
export function StatRow({ children }: { children: ReactNode }) {
  return <div className={styles.strip}>{children}</div>;
}
