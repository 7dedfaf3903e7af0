import { type KeyboardEvent, useId, useState } from "react";
import { Chip, cx, Icon, IconButton } from "../../components";
import {
  type Completion,
  complete,
  FILTER_KEYS,
  isEmpty,
  type JobFilter,
  type KnownValues,
  parseFilter,
  renderFilter,
} from "../../filter";
import styles from "./FilterBar.module.css";

type Props = {
  filter: JobFilter;
  onChange: (filter: JobFilter) => void;
  known: KnownValues;
  /** The names to complete are needed from now on. */
  onOpen: () => void;
};

/** The filter as chips, and a field to add conditions in their text form, with completion. */
export function FilterBar({ filter, onChange, known, onOpen }: Props) {
  const [text, setText] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const [problems, setProblems] = useState<string[]>([]);
  const listId = useId();
  const problemId = useId();
  const completions = isOpen ? complete(text, known) : [];

  const write = (next: string) => {
    setText(next);
    setAt(-1);
    setOpen(true);
    setProblems([]);
  };
  const apply = (written: string) => {
    // A condition that is written again replaces the one before.
    const added = parseFilter(written);
    const merged = { ...filter, ...added.filter };
    const whole = parseFilter(renderFilter(merged));
    const found = [...added.problems, ...whole.problems];
    setProblems(found);
    if (found.length > 0) return;
    setText("");
    setAt(-1);
    setOpen(false);
    onChange(merged);
  };
  const choose = (completion: Completion) => {
    if (completion.isWhole) apply(completion.text);
    else write(completion.text);
  };
  const takeBack = () => {
    const last = FILTER_KEYS.findLast((key) => filter[key]);
    if (last === undefined) return;
    const { [last]: value, ...rest } = filter;
    write(renderFilter({ [last]: value }));
    onChange(rest);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    const chosen = completions[at];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt(cycled(at, step, completions.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (chosen) choose(chosen);
      else if (text.trim() !== "") apply(text);
    } else if (event.key === "Tab" && isOpen && text !== "" && completions.length > 0) {
      const first = chosen ?? completions[0];
      if (first === undefined || first.text === text) return;
      event.preventDefault();
      choose(first);
    } else if (event.key === "Escape") {
      if (isOpen && completions.length > 0) setOpen(false);
      else event.currentTarget.blur();
    } else if (event.key === "Backspace" && text === "") {
      event.preventDefault();
      takeBack();
    }
  };

  return (
    <search className={styles.filter}>
      <div className={cx(styles.bar, problems.length > 0 && styles.invalid)}>
        <Icon name="filter" size={14} className={styles.icon} />
        {FILTER_KEYS.map((key) => {
          const value = filter[key];
          return (
            value && (
              <Chip
                key={key}
                name={key === "q" ? "text" : key}
                onRemove={() => onChange({ ...filter, [key]: "" })}
              >
                {value}
              </Chip>
            )
          );
        })}
        <input
          id={FILTER_ID}
          className={styles.input}
          value={text}
          placeholder={
            isEmpty(filter) ? "status:failed lane:interactive since:1h or any text" : "Add"
          }
          onChange={(event) => write(event.target.value)}
          onFocus={() => {
            onOpen();
            setOpen(true);
          }}
          onBlur={() => setOpen(false)}
          onKeyDown={onKeyDown}
          role="combobox"
          aria-label="Filter jobs"
          aria-expanded={completions.length > 0}
          aria-controls={listId}
          aria-autocomplete="list"
          aria-activedescendant={at >= 0 ? `${listId}-${at}` : undefined}
          aria-invalid={problems.length > 0}
          aria-describedby={problemId}
          autoComplete="off"
          spellCheck={false}
        />
        {!isEmpty(filter) && (
          <IconButton
            icon="cross"
            label="Clear the filter"
            size="sm"
            onPress={() => onChange({})}
          />
        )}
      </div>
      <div
        id={listId}
        role="listbox"
        aria-label="Completions"
        className={styles.list}
        hidden={completions.length === 0}
      >
        {completions.map((completion, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={completion.text}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === at}
            className={styles.option}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(completion)}
          >
            <span>{completion.label}</span>
            {completion.detail && <span className={styles.detail}>{completion.detail}</span>}
          </div>
        ))}
      </div>
      <div id={problemId} role="alert" className={styles.problems}>
        {problems.map((problem) => (
          <p key={problem}>{problem}</p>
        ))}
      </div>
    </search>
  );
}

export const FILTER_ID = "job-filter";

function cycled(at: number, step: number, length: number): number {
  if (length === 0) return -1;
  const next = at + step;
  return next < -1 ? length - 1 : next >= length ? -1 : next;
}
