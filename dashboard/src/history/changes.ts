/** The state of an object before or after a change; null if it did not exist. */
export type State = Record<string, unknown> | null | undefined;

export type FieldChange = { field: string; before: unknown; after: unknown };

// They differ in every change and say nothing about it.
const BOOKKEEPING = new Set(["name", "updated_at", "updated_by"]);

/** The fields that differ between two states, in the order of the newer one. */
export function changedFields(before: State, after: State): FieldChange[] {
  const fields = [...new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})])];
  return fields
    .filter((field) => !BOOKKEEPING.has(field))
    .map((field) => ({ field, before: before?.[field], after: after?.[field] }))
    .filter((each) => !isSame(each.before, each.after));
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

/** What a list gained and lost. */
export function listDifference(
  before: unknown,
  after: unknown,
): { added: string[]; gone: string[] } {
  const [had, has] = [before, after].map((each) => (Array.isArray(each) ? each.map(String) : []));
  return {
    added: (has ?? []).filter((each) => !had?.includes(each)),
    gone: (had ?? []).filter((each) => !has?.includes(each)),
  };
}

type Change = { id: number; before?: unknown; after?: unknown };

/** A question about going back, and what to send for it. */
export type Restoration = {
  isUndo: boolean;
  /** The change whose result is restored; null: the state before the newest change. */
  to: number | null;
  from: State;
  target: State;
};

/**
 * Undo the newest change, or restore the result of an older one. An undo names the change before
 * it, so that it leads to the state that was shown, also if there is a newer change by then.
 */
export function restorationOf(change: Change, newestFirst: readonly Change[]): Restoration {
  const [newest, previous] = newestFirst;
  const from = newest?.after as State;
  if (change !== newest)
    return { isUndo: false, to: change.id, from, target: change.after as State };
  const isKnown = previous !== undefined && previous.after != null;
  return { isUndo: true, to: isKnown ? previous.id : null, from, target: newest.before as State };
}
