import type { ReactElement, ReactNode } from "react";
import { Focusable } from "react-aria-components/Focusable";
import { Tooltip as AriaTooltip, TooltipTrigger } from "react-aria-components/Tooltip";
import { cx } from "./cx";
import styles from "./Tooltip.module.css";

export interface TooltipProps {
  text: ReactNode;
  /** One react-aria control, such as Button. For plain text, use TooltipText. */
  children: ReactElement;
  placement?: "top" | "bottom" | "left" | "right";
}

export function Tooltip({ text, children, placement = "top" }: TooltipProps) {
  return (
    <TooltipTrigger delay={500} closeDelay={0}>
      {children}
      <AriaTooltip className={cx(styles.tooltip)} placement={placement} offset={6}>
        {text}
      </AriaTooltip>
    </TooltipTrigger>
  );
}

export interface TooltipTextProps {
  text: ReactNode;
  children: ReactNode;
  className?: string | undefined;
}

/** Words that show more on hover and focus, such as a relative time with its exact one. */
export function TooltipText({ text, children, className }: TooltipTextProps) {
  return (
    <TooltipTrigger delay={300} closeDelay={0}>
      <Focusable>
        <span role="note" className={className}>
          {children}
        </span>
      </Focusable>
      <AriaTooltip className={cx(styles.tooltip)} offset={6}>
        {text}
      </AriaTooltip>
    </TooltipTrigger>
  );
}
