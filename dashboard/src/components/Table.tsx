import type { HTMLAttributes, ReactNode, TdHTMLAttributes, ThHTMLAttributes } from "react";
import { cx } from "./cx";
import { Icon } from "./Icon";
import { ScrollFrame } from "./ScrollFrame";
import styles from "./Table.module.css";

export interface TableProps {
  /** The name of the table and of its scrolling frame, for screen readers. */
  label: string;
  children: ReactNode;
  dense?: boolean;
  /** Below 980 px, show each row as a card. Cells then need `label`. On by default. */
  stacked?: boolean;
  /** Keep the head in view inside a frame of this height, such as "60vh". */
  maxHeight?: string;
  /** Without the frame's border, inside a Card. */
  bare?: boolean;
}

export function Table({ label, children, dense, stacked = true, maxHeight, bare }: TableProps) {
  return (
    <ScrollFrame
      label={label}
      className={cx(styles.frame, bare && styles.bare, stacked && styles.stackedFrame)}
      maxHeight={maxHeight}
    >
      <table
        aria-label={label}
        className={cx(styles.table, dense && styles.dense, stacked && styles.stacked)}
      >
        {children}
      </table>
    </ScrollFrame>
  );
}

export function TableHead({ children }: { children: ReactNode }) {
  return (
    <thead className={styles.head}>
      <tr>{children}</tr>
    </thead>
  );
}

export function TableBody({ children }: { children: ReactNode }) {
  return <tbody>{children}</tbody>;
}

export interface HeaderCellProps extends ThHTMLAttributes<HTMLTableCellElement> {
  numeric?: boolean;
  /** Sorting, when the column can sort. */
  sort?: "ascending" | "descending" | "none" | undefined;
  onSort?: (() => void) | undefined;
  /** Read aloud, but not shown: for columns of checkboxes and buttons. */
  hidden?: boolean;
  /** Left out when there is no room for every column. */
  secondary?: boolean;
}

export function HeaderCell({
  numeric,
  sort,
  onSort,
  hidden,
  secondary,
  children,
  className,
  ...rest
}: HeaderCellProps) {
  const words = hidden ? <span className="visually-hidden">{children}</span> : children;
  return (
    <th
      scope="col"
      {...rest}
      {...(sort ? { "aria-sort": sort } : {})}
      className={cx(numeric && styles.numeric, secondary && styles.secondary, className)}
    >
      {onSort ? (
        <button type="button" className={styles.sort} onClick={onSort}>
          {words}
          <Icon
            name={sort === "ascending" ? "arrow-up" : "arrow-down"}
            size={12}
            className={cx(sort === "none" && styles.unsorted)}
          />
        </button>
      ) : (
        words
      )}
    </th>
  );
}

export interface RowProps extends HTMLAttributes<HTMLTableRowElement> {
  /** Chosen for an action. */
  selected?: boolean;
  /** Where the keyboard (j, k) stands. */
  current?: boolean;
  /** Nothing happens in it: as a card, it shows only its name, state and buttons. */
  brief?: boolean;
}

export function Row({ selected, current, brief, className, ...rest }: RowProps) {
  return (
    <tr
      {...rest}
      {...(current ? { "aria-current": true } : {})}
      data-selected={selected || undefined}
      className={cx(
        styles.row,
        selected && styles.selected,
        current && styles.current,
        brief && styles.brief,
        className,
      )}
    />
  );
}

export interface CellProps extends Omit<TdHTMLAttributes<HTMLTableCellElement>, "headers"> {
  /** The column's name, shown beside the value when rows are cards. */
  label?: string;
  numeric?: boolean;
  /** Cut long text to one line. */
  truncate?: boolean;
  /** The row's name: a header cell. */
  rowHeader?: boolean;
  /** Checkboxes and buttons: as narrow as they are. */
  control?: boolean;
  /** The row's state: on a card, it stands beside the name. */
  headline?: boolean;
  /** Without a value: left out on a card. A dash says so too. */
  blank?: boolean;
  /** A long value: on a card, it has a line for itself. */
  wide?: boolean;
  /** As the column's header. */
  secondary?: boolean;
}

export function Cell({
  label,
  numeric,
  truncate,
  rowHeader,
  control,
  headline,
  blank,
  wide,
  secondary,
  className,
  children,
  ...rest
}: CellProps) {
  const look = cx(
    numeric && styles.numeric,
    truncate && styles.truncate,
    control && styles.control,
    headline && styles.headline,
    (wide || truncate) && styles.wide,
    secondary && styles.secondary,
    className,
  );
  const marks = { "data-label": label, "data-blank": blank || children === "—" || undefined };
  if (rowHeader) {
    return (
      <th scope="row" {...rest} {...marks} className={cx(styles.rowHeader, look)}>
        {children}
      </th>
    );
  }
  return (
    <td {...rest} {...marks} className={look}>
      {children}
    </td>
  );
}
