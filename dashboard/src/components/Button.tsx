import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaProps } from "react-aria-components/Button";
import styles from "./Button.module.css";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import { Tooltip } from "./Tooltip";

export type ButtonVariant = "primary" | "default" | "quiet" | "danger";

export interface ButtonProps extends Omit<AriaProps, "children" | "className" | "style"> {
  children: ReactNode;
  variant?: ButtonVariant;
  size?: "sm" | "md";
  icon?: IconName;
  /** An icon after the words, such as the chevron of a menu. */
  iconEnd?: IconName;
  className?: string | undefined;
}

/** While `isPending`, the button keeps its size and focus, shows a spinner and ignores presses. */
export function Button({
  children,
  variant = "default",
  size = "md",
  icon,
  iconEnd,
  className,
  ...rest
}: ButtonProps) {
  return (
    <AriaButton
      {...rest}
      className={cx(styles.button, styles[variant], size === "sm" && styles.small, className)}
    >
      {({ isPending }) => (
        <>
          <span className={styles.content}>
            {icon && <Icon name={icon} size={size === "sm" ? 14 : 16} />}
            {children}
            {iconEnd && <Icon name={iconEnd} size={14} />}
          </span>
          {isPending && <Spinner />}
        </>
      )}
    </AriaButton>
  );
}

export interface IconButtonProps extends Omit<ButtonProps, "children" | "iconEnd" | "icon"> {
  icon: IconName;
  /** The name of the action, for screen readers and the tooltip. */
  label: string;
}

export function IconButton({
  icon,
  label,
  variant = "quiet",
  size = "md",
  className,
  ...rest
}: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <AriaButton
        {...rest}
        aria-label={label}
        className={cx(
          styles.button,
          styles[variant],
          styles.square,
          size === "sm" && styles.small,
          className,
        )}
      >
        {({ isPending }) => (
          <>
            <span className={styles.content}>
              <Icon name={icon} size={size === "sm" ? 14 : 16} />
            </span>
            {isPending && <Spinner />}
          </>
        )}
      </AriaButton>
    </Tooltip>
  );
}

function Spinner() {
  return (
    <span className={styles.spinner}>
      <Icon name="spinner" size={14} label="In progress" />
    </span>
  );
}
