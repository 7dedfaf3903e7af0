import { cx } from "./cx";
import { Icon } from "./Icon";
import styles from "./StatusBadge.module.css";
import { statusLook, statusWords } from "./status";
import { toneClass } from "./tones";

export interface StatusBadgeProps {
  /** A status of the API. */
  status: string;
  /** The words for people, as the API gives them; the status itself otherwise. */
  label?: string | undefined;
  /** Without a background, for dense lists. */
  plain?: boolean;
}

export function StatusBadge({ status, label, plain }: StatusBadgeProps) {
  const { tone, icon } = statusLook(status);
  return (
    <span className={cx(styles.badge, plain && styles.plain, toneClass(tone))} data-status={status}>
      <Icon name={icon} size={13} className={cx(tone === "running" && styles.turning)} />
      {statusWords(label ?? status)}
    </span>
  );
}
