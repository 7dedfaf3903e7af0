import { allows, covers, useMe } from "../api";
import { Button, IconButton } from "../components";
import { count } from "../format";
import styles from "./Bulk.module.css";
import { type BulkTarget, fits, takes, VERBS, type Verb } from "./verbs";

type Props = {
  target: BulkTarget;
  /** Selects all jobs that match, not only the loaded ones; absent where that is not possible. */
  onSelectAll?: (() => void) | undefined;
  onVerb: (verb: Verb) => void;
  onClear: () => void;
};

/** The verbs that this person may use, and that can take at least one of the jobs. */
export function useVerbs(target: BulkTarget): Verb[] {
  const me = useMe();
  return VERBS.filter((verb) =>
    target.kind === "filter"
      ? allows(me, verb.permission) && fits(verb, target.filter)
      : target.jobs.some((job) => covers(me, verb.permission, job) && takes(verb, job)),
  );
}

/** What to do with the selected jobs. */
export function BulkBar({ target, onSelectAll, onVerb, onClear }: Props) {
  const verbs = useVerbs(target);
  return (
    <section className={styles.bar} aria-label="Selected jobs">
      <span className={styles.selected} role="status">
        {target.kind === "jobs" ? `${count(target.jobs.length)} selected` : "All matching selected"}
      </span>
      {onSelectAll && target.kind === "jobs" && (
        <Button size="sm" variant="quiet" onPress={onSelectAll}>
          Select all matching
        </Button>
      )}
      <span className={styles.verbs}>
        {verbs.map((verb) => (
          <Button
            key={verb.id}
            size="sm"
            icon={verb.icon}
            variant={verb.id === "delete" ? "danger" : "default"}
            onPress={() => onVerb(verb)}
          >
            {verb.label}
          </Button>
        ))}
        {verbs.length === 0 && <span className="muted">No action takes these jobs.</span>}
      </span>
      <span className={styles.close}>
        <IconButton icon="cross" label="Clear the selection" size="sm" onPress={onClear} />
      </span>
    </section>
  );
}
