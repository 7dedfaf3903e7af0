import type { ReactNode } from "react";
import styles from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";
import { cx } from "./cx";
import { ScrollFrame } from "./ScrollFrame";

export interface CodeBlockProps {
  text: string;
  /** What the code is, for screen readers and the copy button: "curl command". */
  label: string;
  title?: ReactNode;
  wrap?: boolean;
  maxHeight?: string;
  /** Put the focus on its copy button. */
  autoFocus?: boolean;
}

export function CodeBlock({ text, label, title, wrap, maxHeight, autoFocus }: CodeBlockProps) {
  return (
    <div className={styles.block}>
      {title && <div className={styles.title}>{title}</div>}
      <div className={styles.copy}>
        <CopyButton text={text} label={`Copy ${label}`} autoFocus={autoFocus ?? false} />
      </div>
      <ScrollFrame label={label} className={styles.scroll} maxHeight={maxHeight}>
        <pre className={cx(styles.code, wrap && styles.wrap)}>
          <code>{text}</code>
        </pre>
      </ScrollFrame>
    </div>
  );
}
