import type { ReactNode } from "react";
import { IconButton } from "./Button";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import styles from "./Notice.module.css";
import type { Tone } from "./status";
import { toneClass } from "./tones";

export type NoticeKind = "info" | "success" | "warning" | "error";

const looks: Record<NoticeKind, { tone: Tone; icon: IconName; word: string }> = {
  info: { tone: "info", icon: "info", word: "Note" },
  success: { tone: "completed", icon: "success", word: "Done" },
  warning: { tone: "warning", icon: "warning", word: "Warning" },
  error: { tone: "failed", icon: "error", word: "Problem" },
};

export interface NoticeProps {
  kind: NoticeKind;
  title?: ReactNode;
  children?: ReactNode;
  action?: ReactNode;
  onClose?: (() => void) | undefined;
  /** Announce it at once: only for what appears after the user acted. */
  live?: boolean;
}

export function Notice({ kind, title, children, action, onClose, live }: NoticeProps) {
  const { tone, icon, word } = looks[kind];
  return (
    <div
      className={cx(styles.notice, toneClass(tone))}
      {...(live ? { role: kind === "error" ? "alert" : "status" } : {})}
    >
      <Icon name={icon} className={styles.icon} label={word} />
      <div className={styles.body}>
        {title && <p className={styles.title}>{title}</p>}
        {children && <div className={styles.text}>{children}</div>}
      </div>
      {action && <div className={styles.action}>{action}</div>}
      {onClose && <IconButton icon="cross" label="Close" size="sm" onPress={onClose} />}
    </div>
  );
}
