import { Input } from "react-aria-components/Input";
import { TextArea as AriaTextArea } from "react-aria-components/TextArea";
import {
  type TextFieldProps as AriaProps,
  TextField as AriaTextField,
} from "react-aria-components/TextField";
import { cx } from "./cx";
import styles from "./Field.module.css";
import { FieldHelp, FieldLabel, type FieldProps } from "./fieldParts";

export interface TextFieldProps
  extends FieldProps,
    Omit<AriaProps, "children" | "className" | "style" | "isInvalid" | "validate"> {
  placeholder?: string;
  /** Code and identifiers. */
  mono?: boolean;
}

export function TextField({
  label,
  hideLabel,
  hint,
  error,
  isOptional,
  placeholder,
  mono,
  ...rest
}: TextFieldProps) {
  const field = { label, hideLabel, hint, error, isOptional } as FieldProps;
  return (
    <AriaTextField {...rest} className={styles.field ?? ""} isInvalid={Boolean(error)}>
      <FieldLabel {...field} />
      <Input
        className={cx(styles.control, mono && styles.mono)}
        {...(placeholder ? { placeholder } : {})}
      />
      <FieldHelp {...field} />
    </AriaTextField>
  );
}

export interface TextAreaProps extends TextFieldProps {
  rows?: number;
}

export function TextArea({
  label,
  hideLabel,
  hint,
  error,
  isOptional,
  placeholder,
  mono,
  rows = 4,
  ...rest
}: TextAreaProps) {
  const field = { label, hideLabel, hint, error, isOptional } as FieldProps;
  return (
    <AriaTextField {...rest} className={styles.field ?? ""} isInvalid={Boolean(error)}>
      <FieldLabel {...field} />
      <AriaTextArea
        className={cx(styles.control, mono && styles.mono)}
        rows={rows}
        spellCheck={!mono}
        {...(placeholder ? { placeholder } : {})}
      />
      <FieldHelp {...field} />
    </AriaTextField>
  );
}
