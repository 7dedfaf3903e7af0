import { useMemo, useState } from "react";
import { CopyButton } from "./CopyButton";
import { cx } from "./cx";
import { Icon } from "./Icon";
import { ScrollFrame } from "./ScrollFrame";
import { Switch } from "./Switch";
import styles from "./Traceback.module.css";
import { foldFrames, parseTraceback, type TraceFrame } from "./tracebackFrames";

export interface TracebackProps {
  text: string;
  label?: string;
  maxHeight?: string;
}

/** A Python traceback. Frames of Python, packages and Laneway are folded until asked for. */
export function Traceback({ text, label = "Traceback", maxHeight = "480px" }: TracebackProps) {
  const [isWhole, setWhole] = useState(false);
  const parts = useMemo(() => parseTraceback(text), [text]);
  const shown = useMemo(() => (isWhole ? parts : foldFrames(parts)), [parts, isWhole]);
  const hasFolds = useMemo(() => foldFrames(parts).some((part) => part.kind === "folded"), [parts]);
  return (
    <div className={styles.view}>
      <div className={styles.tools}>
        <span className={styles.title}>{label}</span>
        {hasFolds && (
          <Switch isSelected={isWhole} onChange={setWhole}>
            All frames
          </Switch>
        )}
        <CopyButton text={text} label="Copy traceback" />
      </div>
      <ScrollFrame label={label} className={styles.scroll} maxHeight={maxHeight}>
        {shown.map((part, at) => {
          // biome-ignore-start lint/suspicious/noArrayIndexKey: the parts of a fixed text
          if (part.kind === "frame") return <Frame key={at} frame={part} />;
          if (part.kind === "folded") return <Fold key={at} frames={part.frames} />;
          return (
            <div key={at} className={cx(styles.text, part.kind === "error" && styles.error)}>
              {part.text || "\u00a0"}
            </div>
          );
          // biome-ignore-end lint/suspicious/noArrayIndexKey: the parts of a fixed text
        })}
      </ScrollFrame>
    </div>
  );
}

function Fold({ frames }: { frames: TraceFrame[] }) {
  const [isOpen, setOpen] = useState(false);
  const words = frames.length === 1 ? "1 library frame" : `${frames.length} library frames`;
  return (
    <>
      <button
        type="button"
        className={styles.fold}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="chevron-right" size={12} className={cx(styles.arrow, isOpen && styles.open)} />
        {words}
      </button>
      {/* biome-ignore lint/suspicious/noArrayIndexKey: the parts of a fixed text */}
      {isOpen && frames.map((frame, at) => <Frame key={at} frame={frame} />)}
    </>
  );
}

function Frame({ frame }: { frame: TraceFrame }) {
  return (
    <div className={cx(styles.frame, frame.isOwn && styles.own)}>
      <div className={styles.place}>
        <span className={styles.file}>{frame.file}</span>
        {frame.line !== null && <span className={styles.number}>:{frame.line}</span>}
        {frame.name && (
          <>
            {" in "}
            <span className={styles.name}>{frame.name}</span>
          </>
        )}
      </div>
      {frame.code.length > 0 && <pre className={styles.code}>{frame.code.join("\n")}</pre>}
    </div>
  );
}
