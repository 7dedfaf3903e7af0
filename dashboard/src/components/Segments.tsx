import type { ReactNode } from "react";
import { Link } from "wouter";
import { cx } from "./cx";
import styles from "./Segments.module.css";

export interface Segment {
  /** The address of the choice: every choice is a link. */
  href: string;
  label: ReactNode;
  isCurrent: boolean;
}

export interface SegmentsProps {
  label: string;
  items: readonly Segment[];
}

/** A few ways to see the same content, such as time ranges or layouts. */
export function Segments({ label, items }: SegmentsProps) {
  return (
    <nav aria-label={label} className={styles.segments}>
      {items.map((item) => (
        <Link
          key={item.href}
          replace
          href={item.href}
          aria-current={item.isCurrent ? "true" : undefined}
          className={cx(styles.segment, item.isCurrent && styles.current)}
        >
          {item.label}
        </Link>
      ))}
    </nav>
  );
}
