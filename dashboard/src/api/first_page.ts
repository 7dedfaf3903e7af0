type Page<T> = { items: T[]; next_cursor: string | null };
export type ListPages<T> = { pages: Page<T>[]; pageParams: unknown[] };

/**
 * The loaded pages with the first one read again, so that one event needs one read however many
 * pages are loaded. Items up to the end of the first page are replaced; later ones stay. If the page
 * does not reach into what was loaded, only it is kept: there may be items in between.
 */
export function withFirstPage<T extends { id: unknown }>(
  before: ListPages<T>,
  first: Page<T>,
): ListPages<T> {
  const last = first.items.at(-1)?.id;
  const loaded = before.pages.flatMap((page, n) => page.items.map((item) => ({ item, n })));
  const end = loaded.findIndex(({ item }) => item.id === last);
  if (end < 0 || before.pages.length < 2) return { pages: [first], pageParams: [null] };
  const known = new Set(first.items.map(({ id }) => id));
  const rest = loaded.slice(end + 1).filter(({ item }) => !known.has(item.id));
  const later = before.pages.slice(1).map((page, n) => ({
    ...page,
    // What a new item has moved out of the first page comes first on the second.
    items: rest.filter((each) => Math.max(each.n, 1) === n + 1).map(({ item }) => item),
  }));
  return { pages: [first, ...later], pageParams: before.pageParams };
}
