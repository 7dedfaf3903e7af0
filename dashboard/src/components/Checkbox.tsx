import type { ReactNode } from "react";
import { Checkbox as AriaCheckbox } from "react-aria-components/Checkbox";
import styles from "./Checkbox.module.css";
import { Icon } from "./Icon";

export interface CheckboxProps {
  isSelected: boolean;
  onChange: (isSelected: boolean) => void;
  /** Some but not all. */
  isIndeterminate?: boolean;
  isDisabled?: boolean;
  /** Words beside the box, or `label` for screen readers only. */
  children?: ReactNode;
  label?: string;
}

export function Checkbox({ children, label, ...rest }: CheckboxProps) {
  return (
    <AriaCheckbox
      {...rest}
      {...(label ? { "aria-label": label } : {})}
      className={styles.checkbox ?? ""}
    >
      {({ isSelected, isIndeterminate }) => (
        <>
          <span className={styles.box}>
            {(isSelected || isIndeterminate) && (
              <Icon name={isIndeterminate ? "minus" : "check"} size={12} strokeWidth="2.2" />
            )}
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  );
}
