import type { ReactNode } from "react";
import styles from "./Badge.module.css";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import type { Tone } from "./status";
import { toneClass } from "./tones";

export interface BadgeProps {
  children: ReactNode;
  tone?: Tone;
  icon?: IconName;
}

/** A short word or number beside a name: a role, a count, "drained". */
export function Badge({ children, tone = "neutral", icon }: BadgeProps) {
  return (
    <span className={cx(styles.badge, toneClass(tone))}>
      {icon && <Icon name={icon} size={12} />}
      {children}
    </span>
  );
}
