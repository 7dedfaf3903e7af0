import { useMemo, useState } from "react";
import { count, plural } from "../format";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";
import { cx } from "./cx";
import { Icon } from "./Icon";
import { JsonScalar } from "./JsonScalar";
import styles from "./JsonView.module.css";
import {
  emptyTree,
  type JsonRow,
  type MoreRow,
  openAll,
  showMore,
  toggle,
  visibleRows,
} from "./jsonTree";
import { childCount, inOrder, jsonText } from "./jsonValue";
import { ScrollFrame } from "./ScrollFrame";

export interface JsonViewProps {
  /** JSON as the API client parses it. */
  value: unknown;
  /** The original text, for copying. */
  text?: string | undefined;
  /** What the value is, for screen readers: "Payload". */
  label: string;
  maxHeight?: string;
}

const DEEPEST_INDENT = 16;

/** A tree that draws only its open part, so that a value of 1 MiB costs no more than a small one. */
export function JsonView({ value, text, label, maxHeight = "480px" }: JsonViewProps) {
  const [tree, setTree] = useState(emptyTree);
  const rows = useMemo(() => visibleRows(value, tree), [value, tree]);
  const isBranch = childCount(value) > 0;
  return (
    <div className={styles.view}>
      <div className={styles.tools}>
        {isBranch && (
          <>
            <Button size="sm" variant="quiet" onPress={() => setTree(openAll(value))}>
              Expand
            </Button>
            <Button size="sm" variant="quiet" onPress={() => setTree(closedTree)}>
              Collapse
            </Button>
          </>
        )}
        <CopyButton text={() => text ?? jsonText(value)} label={`Copy ${label.toLowerCase()}`} />
      </div>
      <ScrollFrame label={label} className={styles.scroll} maxHeight={maxHeight}>
        <ul className={styles.rows}>
          {rows.map((row) => (
            <li
              key={row.path}
              style={{ paddingLeft: `${Math.min(row.depth, DEEPEST_INDENT) * 14}px` }}
            >
              {"more" in row ? (
                <More row={row} onMore={() => setTree(showMore(tree, row.more.parent))} />
              ) : (
                <Node row={row} onToggle={() => setTree(toggle(tree, row))} />
              )}
            </li>
          ))}
        </ul>
      </ScrollFrame>
    </div>
  );
}

const closedTree = { toggled: new Map([["", false]]), shown: new Map() };

function Node({ row, onToggle }: { row: JsonRow; onToggle: () => void }) {
  const isBranch = row.kind === "object" || row.kind === "array";
  const key = row.key !== null && (
    <span className={cx(styles.key, typeof row.key === "number" && styles.index)}>
      {row.key === "" ? '""' : inOrder(String(row.key))}
      <span className={styles.colon}>:</span>
    </span>
  );
  if (!isBranch) {
    return (
      <span className={styles.leaf}>
        {key}
        <JsonScalar value={row.value} />
      </span>
    );
  }
  if (row.count === 0) {
    return (
      <span className={styles.leaf}>
        {key}
        <span className={styles.summary}>{row.kind === "array" ? "[]" : "{}"}</span>
      </span>
    );
  }
  return (
    <button type="button" className={styles.branch} aria-expanded={row.isOpen} onClick={onToggle}>
      <Icon
        name="chevron-right"
        size={12}
        className={cx(styles.arrow, row.isOpen && styles.open)}
      />
      {key}
      <span className={styles.summary}>{countWords(row)}</span>
    </button>
  );
}

function More({ row, onMore }: { row: MoreRow; onMore: () => void }) {
  return (
    <button type="button" className={styles.more} onClick={onMore}>
      Show more ({count(row.more.hidden)} hidden)
    </button>
  );
}

function countWords(row: JsonRow): string {
  return row.kind === "array" ? `[${plural(row.count, "item")}]` : `{${plural(row.count, "key")}}`;
}
