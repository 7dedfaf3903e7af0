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
  /** At the top of a card without inner space. */
  inset?: boolean;
  /** Tools of the current tab, at the end of the line. */
  tools?: ReactNode;
}

export function Tabs({ label, items, inset, tools }: TabsProps) {
  const list = (
    <nav aria-label={label} className={styles.scroll}>
      <ul className={styles.list}>
        {items.map((item) => (
          <li key={item.href} className={styles.item}>
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
  return (
    <div className={cx(styles.frame, inset && styles.inset)}>
      {list}
      {tools && <div className={styles.tools}>{tools}</div>}
    </div>
  );
}
