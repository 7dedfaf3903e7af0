import { ComboBox } from "../../components";
import type { JobType } from "./useJobTypes";

type Props = {
  types: readonly JobType[];
  value: string;
  onChange: (name: string) => void;
  hint?: string | undefined;
  error?: string | null | undefined;
};

/** The name of a job type, completed with the published ones; any other is allowed. */
export function JobTypeField({ types, value, onChange, hint, error }: Props) {
  return (
    <ComboBox
      label="Job type"
      value={value}
      onChange={onChange}
      placeholder="ingestion"
      isFiltered
      suggestions={matching(types, value).map(({ name, lane, is_known }) => ({
        value: name,
        detail: is_known ? `lane ${lane}` : `lane ${lane} · no live worker runs it`,
      }))}
      hint={hint}
      error={error ?? null}
    />
  );
}

const MOST_SUGGESTED = 50;

/** The types that a person may mean; all of them until something else is typed. */
function matching(types: readonly JobType[], typed: string): JobType[] {
  const text = typed.trim().toLowerCase();
  const isChosen = types.some(({ name }) => name === typed.trim());
  return types
    .filter(({ name }) => isChosen || name.toLowerCase().includes(text))
    .slice(0, MOST_SUGGESTED);
}
