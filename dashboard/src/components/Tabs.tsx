import type { ReactNode } from "react";
import { Link } from "wouter";
import { cx } from "./cx";
import styles from "./Tabs.module.css";

export interface TabItem {
  /** The address of the tab: every tab is a link. */
  href: string;
  label: ReactNode;
  count?: ReactNode;
  isCurrent: boolean;
}

export interface TabsProps {
  label: string;
  items: readonly TabItem[];
}

export function Tabs({ label, items }: TabsProps) {
  return (
    <nav aria-label={label} className={styles.frame}>
      <ul className={styles.list}>
        {items.map((item) => (
          <li key={item.href}>
            <Link
              href={item.href}
              className={cx(styles.tab, item.isCurrent && styles.current)}
              {...(item.isCurrent ? { "aria-current": "page" as const } : {})}
            >
              {item.label}
              {item.count !== undefined && <span className={styles.count}>{item.count}</span>}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
