import { Button as AriaButton } from "react-aria-components/Button";
import { ComboBox as AriaComboBox } from "react-aria-components/ComboBox";
import { Group } from "react-aria-components/Group";
import { Input } from "react-aria-components/Input";
import { ListBox, ListBoxItem } from "react-aria-components/ListBox";
import { Popover } from "react-aria-components/Popover";
import { cx } from "./cx";
import styles from "./Field.module.css";
import { FieldHelp, FieldLabel, type FieldProps } from "./fieldParts";
import { Icon } from "./Icon";
import list from "./Popover.module.css";

export interface Suggestion {
  /** The text that choosing it puts into the field. */
  value: string;
  detail?: string;
}

export interface ComboBoxProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  /** Already filtered by the caller when `isFiltered`. */
  suggestions: readonly Suggestion[];
  isFiltered?: boolean;
  placeholder?: string;
  isDisabled?: boolean;
}

/** Free text with suggestions: any value is allowed. */
export function ComboBox({
  label,
  hideLabel,
  hint,
  error,
  isOptional,
  value,
  onChange,
  suggestions,
  isFiltered,
  placeholder,
  isDisabled = false,
}: ComboBoxProps) {
  const field = { label, hideLabel, hint, error, isOptional } as FieldProps;
  return (
    <AriaComboBox
      className={styles.field ?? ""}
      inputValue={value}
      onInputChange={onChange}
      allowsCustomValue
      menuTrigger="focus"
      isDisabled={isDisabled}
      isInvalid={Boolean(error)}
      {...(isFiltered ? { defaultFilter: () => true } : {})}
    >
      <FieldLabel {...field} />
      <Group className={styles.group ?? ""}>
        <Input {...(placeholder ? { placeholder } : {})} />
        <AriaButton className={styles.step ?? ""}>
          <Icon name="chevron-down" size={14} />
        </AriaButton>
      </Group>
      <FieldHelp {...field} />
      <Popover className={cx(list.popover, list.fitted)} offset={4}>
        <ListBox className={list.list ?? ""}>
          {suggestions.map((suggestion) => (
            <ListBoxItem
              key={suggestion.value}
              id={suggestion.value}
              textValue={suggestion.value}
              className={list.item ?? ""}
            >
              <span className={list.words}>
                {suggestion.value}
                {suggestion.detail && <span className={list.detail}>{suggestion.detail}</span>}
              </span>
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </AriaComboBox>
  );
}
