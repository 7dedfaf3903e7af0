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
