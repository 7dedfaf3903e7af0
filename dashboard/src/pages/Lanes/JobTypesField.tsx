import { useId, useState } from "react";
import { Button, Chip, ComboBox } from "../../components";
import { useJobTypes } from "../Jobs/useJobTypes";
import styles from "./Lanes.module.css";

type Props = {
  jobTypes: string[];
  onChange: (jobTypes: string[]) => void;
  error?: string | null;
  hint?: string;
};

/** Adds and removes job types of a lane; suggests what workers have published. */
export function JobTypesField({ jobTypes, onChange, error, hint }: Props) {
  const [text, setText] = useState("");
  const id = useId();
  const suggestions = useJobTypes()
    .types.filter(({ name }) => !jobTypes.includes(name))
    .map(({ name, lane }) => ({ value: name, detail: `in lane ${lane}` }));
  const add = () => {
    const name = text.trim();
    if (name === "" || jobTypes.includes(name)) return;
    onChange([...jobTypes, name]);
    setText("");
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would bring its own frame and legend
    <div className={styles.typeField} role="group" aria-labelledby={id}>
      <span id={id} className={styles.label}>
        Job types
      </span>
      {jobTypes.length > 0 && (
        <div className={styles.types}>
          {jobTypes.map((name) => (
            <Chip key={name} onRemove={() => onChange(jobTypes.filter((each) => each !== name))}>
              {name}
            </Chip>
          ))}
        </div>
      )}
      <div className={styles.addType}>
        <ComboBox
          label="Add a job type"
          hideLabel
          placeholder="Add a job type"
          value={text}
          onChange={setText}
          suggestions={suggestions}
        />
        <Button onPress={add} isDisabled={text.trim() === ""} icon="plus">
          Add
        </Button>
      </div>
      {hint && !error && <p className={styles.hint}>{hint}</p>}
      {error && <p className={styles.error}>{error}</p>}
    </div>
  );
}
