type Page<T> = { items: T[]; next_cursor: string | null };
export type ListPages<T> = { pages: Page<T>[]; pageParams: unknown[] };

/**
 * The loaded pages with the first one read again, so that one event needs one read however many
 * pages are loaded. Items up to the end of the first page are replaced; later ones stay. If the page
 * does not reach into what was loaded, only it is kept: there may be items in between.
 *
 * Pages end where the server gave a cursor, and keep their size. When new items have come, the last
 * page is dropped if as many full pages as before stay without it.
 */
export function withFirstPage<T extends { id: unknown }>(
  before: ListPages<T>,
  first: Page<T>,
): ListPages<T> {
  const last = first.items.at(-1)?.id;
  const endsAt = before.pages.findIndex(({ items }) => items.some(({ id }) => id === last));
  if (first.next_cursor === null || endsAt < 0) return { pages: [first], pageParams: [null] };
  const known = new Set(first.items.map(({ id }) => id));
  const rest = before.pages.slice(endsAt).map((page, n) => {
    const from = n === 0 ? page.items.findIndex(({ id }) => id === last) + 1 : 0;
    return { ...page, items: page.items.slice(from).filter(({ id }) => !known.has(id)) };
  });
  const size = first.items.length;
  const pages = [first, ...merged(rest, size)];
  const loaded = count(before.pages);
  const wanted = loaded - (loaded % size);
  while (count(pages) > loaded && count(pages.slice(0, -1)) >= wanted) pages.pop();
  return { pages, pageParams: [null, ...pages.slice(0, -1).map((page) => page.next_cursor)] };
}

/** The pages that have items, with neighbours put together where they fit into one page. */
function merged<T>(pages: Page<T>[], size: number): Page<T>[] {
  const found: Page<T>[] = [];
  for (const page of pages.filter(({ items }) => items.length > 0)) {
    const end = found.at(-1);
    if (end === undefined || end.items.length + page.items.length > size) found.push(page);
    else found.splice(-1, 1, { ...page, items: [...end.items, ...page.items] });
  }
  return found;
}

function count<T>(pages: Page<T>[]): number {
  return pages.reduce((sum, { items }) => sum + items.length, 0);
}
