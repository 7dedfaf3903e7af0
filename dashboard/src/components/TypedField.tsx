import { useState } from "react";
import { TextField } from "./TextField";

export interface TypedFieldProps {
  label: string;
  hideLabel?: boolean;
  placeholder?: string;
  value: string | undefined;
  onApply: (value: string) => void;
}

/** A text of a filter, which counts when the field is left, or by Enter. */
export function TypedField({ value = "", onApply, ...rest }: TypedFieldProps) {
  const [text, setText] = useState(value);
  const [shown, setShown] = useState(value);
  if (shown !== value) {
    setShown(value);
    setText(value);
  }
  const apply = () => text.trim() !== value && onApply(text.trim());
  return (
    <TextField
      {...rest}
      value={text}
      onChange={setText}
      onBlur={apply}
      onKeyDown={(event) => event.key === "Enter" && apply()}
    />
  );
}
