import { Icon } from "../components";
import { changedFields, type FieldChange, listDifference, type State } from "./changes";
import styles from "./History.module.css";

/** How people read a field and its value. */
export type FieldWords = {
  name: (field: string) => string;
  value: (field: string, value: unknown) => string;
};

type Props = { before: State; after: State; words: FieldWords };

/** The fields that differ between two states: before → after. */
export function FieldChanges({ before, after, words }: Props) {
  const fields = changedFields(before, after);
  if (fields.length === 0) return <span className="muted">No difference</span>;
  return (
    <ul className={styles.fields}>
      {fields.map((change) => (
        <li key={change.field}>
          <span className={styles.field}>{words.name(change.field)}</span>
          <Values change={change} words={words} isNew={before === null} />
        </li>
      ))}
    </ul>
  );
}

function Values(props: { change: FieldChange; words: FieldWords; isNew: boolean }) {
  const { change, words, isNew } = props;
  if (!isNew && Array.isArray(change.before) && Array.isArray(change.after)) {
    const { added, gone } = listDifference(change.before, change.after);
    return (
      <span className={styles.values}>
        {gone.map((each) => (
          <del key={each}>{each}</del>
        ))}
        {added.map((each) => (
          <ins key={each}>{each}</ins>
        ))}
      </span>
    );
  }
  return (
    <span className={styles.values}>
      {!isNew && (
        <>
          <span className={styles.before}>{words.value(change.field, change.before)}</span>
          <Icon name="arrow-right" size={12} label="becomes" />
        </>
      )}
      <strong className={styles.after}>{words.value(change.field, change.after)}</strong>
    </span>
  );
}
