import type { ReactNode } from "react";
import { FieldError } from "react-aria-components/FieldError";
import { Label } from "react-aria-components/Label";
import { Text } from "react-aria-components/Text";
import { cx } from "./cx";
import styles from "./Field.module.css";
import { Icon } from "./Icon";

export interface FieldProps {
  label: string;
  /** Only for screen readers: where the place says what the field is. */
  hideLabel?: boolean;
  /** One sentence of help below. */
  hint?: ReactNode;
  /** What is wrong with the value, in words. */
  error?: string | null | undefined;
  isOptional?: boolean;
}

export function FieldLabel({ label, hideLabel, isOptional }: FieldProps) {
  return (
    <Label className={cx(styles.label, hideLabel && styles.hiddenLabel)}>
      {label}
      {isOptional && <span className={styles.optional}> optional</span>}
    </Label>
  );
}

export function FieldHelp({ hint, error }: FieldProps) {
  return (
    <>
      {hint && !error && (
        <Text slot="description" className={styles.hint ?? ""}>
          {hint}
        </Text>
      )}
      <FieldError className={styles.error ?? ""}>
        <Icon name="error" size={12} />
        {error}
      </FieldError>
    </>
  );
}
