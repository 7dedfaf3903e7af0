import { Button as AriaButton } from "react-aria-components/Button";
import { ListBox, ListBoxItem } from "react-aria-components/ListBox";
import { Popover } from "react-aria-components/Popover";
import { Select as AriaSelect, SelectValue } from "react-aria-components/Select";
import { cx } from "./cx";
import styles from "./Field.module.css";
import { FieldHelp, FieldLabel, type FieldProps } from "./fieldParts";
import { Icon, type IconName } from "./Icon";
import list from "./Popover.module.css";

export interface SelectOption<Id extends string = string> {
  id: Id;
  label: string;
  detail?: string;
  icon?: IconName;
  isDisabled?: boolean;
}

export interface SelectProps<Id extends string = string> extends FieldProps {
  options: readonly SelectOption<Id>[];
  value: Id | null;
  onChange: (value: Id) => void;
  placeholder?: string;
  isDisabled?: boolean;
}

export function Select<Id extends string>({
  label,
  hideLabel,
  hint,
  error,
  isOptional,
  options,
  value,
  onChange,
  placeholder = "Choose",
  isDisabled = false,
}: SelectProps<Id>) {
  const field = { label, hideLabel, hint, error, isOptional } as FieldProps;
  return (
    <AriaSelect
      className={styles.field ?? ""}
      value={value}
      onChange={(key) => key !== null && onChange(key as Id)}
      placeholder={placeholder}
      isDisabled={isDisabled}
      isInvalid={Boolean(error)}
    >
      <FieldLabel {...field} />
      <AriaButton className={cx(styles.control, styles.select)}>
        <SelectValue className={styles.value ?? ""}>
          {({ isPlaceholder }) =>
            isPlaceholder ? placeholder : options.find((option) => option.id === value)?.label
          }
        </SelectValue>
        <Icon name="chevron-down" size={14} />
      </AriaButton>
      <FieldHelp {...field} />
      <Popover className={cx(list.popover, list.fitted)} offset={4}>
        <ListBox className={list.list ?? ""}>
          {options.map((option) => (
            <ListBoxItem
              key={option.id}
              id={option.id}
              textValue={option.label}
              isDisabled={option.isDisabled ?? false}
              className={list.item ?? ""}
            >
              {option.icon && <Icon name={option.icon} />}
              <span className={list.words}>
                {option.label}
                {option.detail && <span className={list.detail}>{option.detail}</span>}
              </span>
              {option.id === value && <Icon name="check" size={14} />}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
