import { IconButton } from "../../components";

type Props = { at: number; most: number; onChange: (at: number) => void };

/** Zoom out and in, from 0 to `most`. */
export function Zoom({ at, most, onChange }: Props) {
  return (
    <>
      <IconButton
        icon="minus"
        size="sm"
        label="Zoom out"
        isDisabled={at === 0}
        onPress={() => onChange(at - 1)}
      />
      <IconButton
        icon="plus"
        size="sm"
        label="Zoom in"
        isDisabled={at === most}
        onPress={() => onChange(at + 1)}
      />
    </>
  );
}
