import type { ReactNode } from "react";
import { Switch as AriaSwitch } from "react-aria-components/Switch";
import styles from "./Switch.module.css";

export interface SwitchProps {
  children: ReactNode;
  isSelected: boolean;
  onChange: (isSelected: boolean) => void;
  isDisabled?: boolean;
  isReadOnly?: boolean;
  hint?: ReactNode;
}

export function Switch({ children, hint, ...rest }: SwitchProps) {
  return (
    <AriaSwitch {...rest} className={styles.switch ?? ""}>
      <span className={styles.track}>
        <span className={styles.knob} />
      </span>
      <span className={styles.words}>
        {children}
        {hint && <span className={styles.hint}>{hint}</span>}
      </span>
    </AriaSwitch>
  );
}
