import type { CSSProperties } from "react";
import { cx } from "./cx";
import styles from "./Skeleton.module.css";

export interface SkeletonProps {
  width?: string | number;
  height?: string | number;
}

/** A grey block where something will be. Give it the size of what comes. */
export function Skeleton({ width = "100%", height = 14 }: SkeletonProps) {
  return <span className={styles.block} style={{ width, height }} aria-hidden="true" />;
}

const widths = ["92%", "78%", "85%", "64%", "88%", "71%"];

export function SkeletonLines({ count = 3 }: { count?: number }) {
  return (
    <Loading className={styles.lines}>
      {list(count, (at) => (
        <Skeleton key={at} width={widths[at % widths.length] ?? "80%"} />
      ))}
    </Loading>
  );
}

export interface SkeletonRowsProps {
  rows?: number;
  /** The widths of the columns, as in CSS grid: "2fr 1fr 80px". */
  columns?: string;
  dense?: boolean;
}

/** The place of a table that loads, with rows of the same height. */
export function SkeletonRows({ rows = 6, columns = "2fr 1fr 1fr 80px", dense }: SkeletonRowsProps) {
  const cells = columns.split(" ").length;
  const style: CSSProperties = { gridTemplateColumns: columns, height: dense ? 32 : 40 };
  return (
    <Loading className={styles.rows}>
      {list(rows, (row) => (
        <span key={row} className={styles.row} style={style}>
          {list(cells, (at) => (
            <Skeleton key={at} width={widths[(row + at) % widths.length] ?? "80%"} height={12} />
          ))}
        </span>
      ))}
    </Loading>
  );
}

/** The place of cards that load, in the layout of the page. */
export function LoadingCards({ className, children }: SkeletonPlaceProps) {
  return (
    <div className={className} aria-busy="true">
      <output className="visually-hidden">Loading</output>
      {children}
    </div>
  );
}

export interface SkeletonCardProps {
  lines: number;
  className?: string | undefined;
}

/** A card that loads: its title, and as many lines as will come. */
export function SkeletonCard({ lines, className }: SkeletonCardProps) {
  return (
    <div className={cx(styles.card, className)}>
      <Skeleton width="28%" height={16} />
      {list(lines, (at) => (
        <Skeleton key={at} width={widths[at % widths.length] ?? "80%"} />
      ))}
    </div>
  );
}

interface SkeletonPlaceProps {
  className?: string | undefined;
  children: React.ReactNode;
}

function Loading({ className, children }: SkeletonPlaceProps) {
  return (
    <output className={className} aria-busy="true">
      <span className="visually-hidden">Loading</span>
      {children}
    </output>
  );
}

function list<Item>(count: number, make: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => make(at));
}
