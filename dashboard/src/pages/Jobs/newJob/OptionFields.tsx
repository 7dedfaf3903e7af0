import { Select, TextField } from "../../../components";
import type { JobOptions, StartKind } from "./jobOptions";
import styles from "./NewJob.module.css";

const STARTS = [
  { id: "now", label: "As soon as there is room" },
  { id: "delay", label: "After a delay" },
  { id: "at", label: "At a time" },
] as const satisfies ReadonlyArray<{ id: StartKind; label: string }>;

type Props = {
  options: JobOptions;
  onChange: (change: Partial<JobOptions>) => void;
  errors: Partial<Record<keyof JobOptions, string>>;
  /** The defaults of the job type. */
  priority: number | null;
  maxRetries: number | null;
};

export function OptionFields({ options, onChange, errors, priority, maxRetries }: Props) {
  const text = (name: keyof JobOptions) => ({
    value: options[name],
    onChange: (value: string) => onChange({ [name]: value }),
    error: errors[name] ?? null,
  });
  return (
    <div className={styles.options}>
      <TextField
        label="Priority"
        inputMode="numeric"
        hint="Higher starts first"
        placeholder={priority === null ? "" : `Default: ${priority}`}
        {...text("priority")}
      />
      <Select
        label="Start"
        options={STARTS}
        value={options.start}
        onChange={(start) => onChange({ start })}
      />
      {options.start === "delay" && (
        <TextField label="Delay" placeholder="15m" hint="90s, 15m, 1h 30m, 2d" {...text("delay")} />
      )}
      {options.start === "at" && (
        <TextField
          label="Start at"
          type="datetime-local"
          hint="In this browser's time zone"
          {...text("runAt")}
        />
      )}
      <TextField label="Tags" placeholder="nightly, eu" isOptional {...text("tags")} />
      <TextField
        label="Unique key"
        isOptional
        hint="A second job with this key returns the first"
        {...text("uniqueKey")}
      />
      <TextField label="Workspace" placeholder="default" isOptional {...text("workspace")} />
      <TextField
        label="Retries"
        inputMode="numeric"
        placeholder={maxRetries === null ? "" : `Default: ${maxRetries}`}
        isOptional
        {...text("maxRetries")}
      />
    </div>
  );
}
