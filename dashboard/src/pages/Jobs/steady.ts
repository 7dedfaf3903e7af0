/** Items of a list that a person reads: those that came in front since are held back. */
export function heldBack<T extends { id: string }>(
  items: readonly T[],
  accepted: ReadonlySet<string>,
): { fresh: T[]; shown: T[] } {
  const first = items.findIndex(({ id }) => accepted.has(id));
  return first <= 0
    ? { fresh: [], shown: [...items] }
    : { fresh: items.slice(0, first), shown: items.slice(first) };
}

type Dated = { id: string; created_at: string };

/** The ids of the newest items that the list does not show, as far as the list reaches. */
export function unseen(
  newest: readonly Dated[],
  shown: readonly Dated[],
  isWhole: boolean,
): string[] {
  const known = new Set(shown.map(({ id }) => id));
  const oldest = shown.at(-1)?.created_at ?? "";
  return newest
    .filter(({ id, created_at }) => !known.has(id) && (isWhole || created_at >= oldest))
    .map(({ id }) => id);
}
