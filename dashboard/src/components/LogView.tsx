import { useMemo, useState } from "react";
import { count, plural } from "../format";
import { CopyButton } from "./CopyButton";
import { cx } from "./cx";
import styles from "./LogView.module.css";
import { linkify } from "./linkify";
import { ScrollFrame } from "./ScrollFrame";
import { Switch } from "./Switch";

export interface LogLine {
  id: string | number;
  /** The time in words, as the page formats it. */
  time: string;
  /** The exact time, shown on hover. */
  timeTitle?: string;
  level: string;
  message: string;
}

export interface LogViewProps {
  label: string;
  /** Oldest first. */
  lines: readonly LogLine[];
  maxHeight?: string;
  /** Said when there are no lines at all. */
  emptyWords?: string;
}

const ERRORS = new Set(["error", "critical", "fatal", "exception"]);
const CHUNK = 500;

export function isErrorLevel(level: string): boolean {
  return ERRORS.has(level.toLowerCase());
}

export function LogView({
  label,
  lines,
  maxHeight = "420px",
  emptyWords = "No log lines yet",
}: LogViewProps) {
  const [isWrapped, setWrapped] = useState(true);
  const [isNewestFirst, setNewestFirst] = useState(false);
  const [isErrorsOnly, setErrorsOnly] = useState(false);
  const [limit, setLimit] = useState(CHUNK);
  const chosen = useMemo(() => {
    const kept = isErrorsOnly ? lines.filter((line) => isErrorLevel(line.level)) : [...lines];
    return isNewestFirst ? kept.reverse() : kept;
  }, [lines, isErrorsOnly, isNewestFirst]);
  const text = () =>
    chosen.map((line) => `${line.timeTitle ?? line.time} ${line.level} ${line.message}`).join("\n");
  return (
    <div className={styles.view}>
      <div className={styles.tools}>
        <Switch isSelected={isErrorsOnly} onChange={setErrorsOnly}>
          Errors only
        </Switch>
        <Switch isSelected={isNewestFirst} onChange={setNewestFirst}>
          Newest first
        </Switch>
        <Switch isSelected={isWrapped} onChange={setWrapped}>
          Wrap
        </Switch>
        <span className={styles.count}>{plural(chosen.length, "line")}</span>
        <CopyButton text={text} label="Copy log" />
      </div>
      <ScrollFrame label={label} className={styles.scroll} maxHeight={maxHeight}>
        {chosen.length === 0 && (
          <p className={styles.empty}>{lines.length === 0 ? emptyWords : "No errors logged"}</p>
        )}
        <ol className={cx(styles.lines, isWrapped && styles.wrapped)}>
          {chosen.slice(0, limit).map((line) => (
            <Line key={line.id} line={line} />
          ))}
        </ol>
        {chosen.length > limit && (
          <button type="button" className={styles.more} onClick={() => setLimit(limit + CHUNK * 4)}>
            Show more ({count(chosen.length - limit)} hidden)
          </button>
        )}
      </ScrollFrame>
    </div>
  );
}

function Line({ line }: { line: LogLine }) {
  const level = line.level.toLowerCase();
  return (
    <li className={styles.line} data-level={isErrorLevel(level) ? "error" : level}>
      <time className={styles.time} title={line.timeTitle}>
        {line.time}
      </time>
      <span className={styles.level}>{level}</span>
      <bdi className={styles.message}>
        {linkify(line.message).map((part, at) =>
          part.href ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a fixed text
            <a key={at} href={part.href} target="_blank" rel="noopener noreferrer">
              {part.text}
            </a>
          ) : (
            part.text
          ),
        )}
      </bdi>
    </li>
  );
}
