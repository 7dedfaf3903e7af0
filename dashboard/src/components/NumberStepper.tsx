import { Button as AriaButton } from "react-aria-components/Button";
import { Group } from "react-aria-components/Group";
import { Input } from "react-aria-components/Input";
import { NumberField } from "react-aria-components/NumberField";
import { cx } from "./cx";
import styles from "./Field.module.css";
import { FieldHelp, FieldLabel, type FieldProps } from "./fieldParts";
import { Icon } from "./Icon";

export interface NumberStepperProps extends FieldProps {
  value: number;
  onChange: (value: number) => void;
  minValue?: number;
  maxValue?: number;
  step?: number;
  unit?: string;
  isDisabled?: boolean;
}

export function NumberStepper({
  label,
  hideLabel,
  hint,
  error,
  isOptional,
  unit,
  onChange,
  ...rest
}: NumberStepperProps) {
  const field = { label, hideLabel, hint, error, isOptional } as FieldProps;
  return (
    <NumberField
      {...rest}
      className={styles.field ?? ""}
      isInvalid={Boolean(error)}
      onChange={(value) => Number.isFinite(value) && onChange(value)}
    >
      <FieldLabel {...field} />
      <Group className={cx(styles.group, styles.stepper)}>
        <AriaButton slot="decrement" className={styles.step ?? ""}>
          <Icon name="minus" size={12} />
        </AriaButton>
        <Input />
        {unit && <span className={styles.unit}>{unit}</span>}
        <AriaButton slot="increment" className={styles.step ?? ""}>
          <Icon name="plus" size={12} />
        </AriaButton>
      </Group>
      <FieldHelp {...field} />
    </NumberField>
  );
}
