import { Fragment, type ReactNode } from "react";
import { cx } from "./cx";
import styles from "./KeyValue.module.css";

export interface KeyValueItem {
  name: ReactNode;
  value: ReactNode;
  /** React key; the name when it is a string. */
  key?: string;
}

export interface KeyValueProps {
  items: readonly KeyValueItem[];
  /** One below the other, for narrow columns. */
  stacked?: boolean;
}

export function KeyValue({ items, stacked }: KeyValueProps) {
  return (
    <dl className={cx(styles.list, stacked && styles.stacked)}>
      {items.map((item, at) => (
        <Fragment key={item.key ?? (typeof item.name === "string" ? item.name : at)}>
          <dt>{item.name}</dt>
          <dd>{item.value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
