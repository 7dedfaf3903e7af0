import { useState } from "react";
import type { components, Pages } from "../api";
import {
  Badge,
  Button,
  ConfirmDialog,
  EmptyState,
  SkeletonLines,
  statusWords,
} from "../components";
import { ErrorNotice } from "../shell/ErrorNotice";
import { MoreButton } from "../shell/MoreButton";
import { Time } from "../time";
import { type Restoration, restorationOf, type State } from "./changes";
import { FieldChanges, type FieldWords } from "./FieldChanges";
import styles from "./History.module.css";

type Change = components["schemas"]["ChangeOut"];

type Props = {
  pages: Pages<Change>;
  words: FieldWords;
  /** What the history is of: "lane interactive". */
  subject: string;
  /** Restore the state right after a change; null: before the newest. Left out for readers. */
  onRestore?: ((to: number | null) => Promise<unknown>) | undefined;
};

/** Who changed what and when, with a way back. */
export function ChangeHistory({ pages, words, subject, onRestore }: Props) {
  // As it was when the button was pressed: the question must not change when others change something.
  const [restoring, setRestoring] = useState<Restoration | null>(null);
  const { items } = pages;
  const newest = items[0];
  if (pages.isError) return <ErrorNotice of={pages} />;
  if (pages.isPending) return <SkeletonLines count={4} />;
  if (!newest) {
    return (
      <EmptyState icon="history" title="No changes yet">
        Every change is listed here with its author, and can be undone.
      </EmptyState>
    );
  }
  return (
    <>
      <ol className={styles.list}>
        {items.map((change) => (
          <li key={change.id} className={styles.change}>
            <div className={styles.who}>
              <span className={styles.by}>{change.by}</span>
              <Time at={change.at} />
              {change.verb !== "changed" && <Badge>{statusWords(change.verb)}</Badge>}
            </div>
            <FieldChanges
              before={change.before as State}
              after={change.after as State}
              words={words}
            />
            {onRestore && isRestorable(change, newest) && (
              <Button
                size="sm"
                variant="quiet"
                icon="history"
                onPress={() => setRestoring(restorationOf(change, items))}
              >
                {change === newest ? "Undo" : "Restore"}
              </Button>
            )}
          </li>
        ))}
      </ol>
      <MoreButton of={pages} />
      {restoring && onRestore && (
        <ConfirmDialog
          isOpen
          title={restoring.isUndo ? "Undo the newest change?" : "Restore this state?"}
          confirmLabel={restoring.isUndo ? "Undo" : "Restore"}
          onClose={() => setRestoring(null)}
          onConfirm={() => onRestore(restoring.to)}
        >
          <p className={styles.question}>
            {`Changes of ${subject}, as another entry in this history:`}
          </p>
          <FieldChanges before={restoring.from} after={restoring.target} words={words} />
        </ConfirmDialog>
      )}
    </>
  );
}

// A creation cannot be undone here, and a deletion is restored by its undo.
function isRestorable(change: Change, newest: Change): boolean {
  return change === newest ? change.before !== null : change.after !== null;
}
