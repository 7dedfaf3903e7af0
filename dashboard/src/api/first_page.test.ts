import { expect, it } from "vitest";
import { type ListPages, withFirstPage } from "./first_page";

const page = (ids: number[], next_cursor: string | null = null) => ({
  items: ids.map((id) => ({ id })),
  next_cursor,
});
const before: ListPages<{ id: number }> = {
  pages: [page([9, 8, 7], "c7"), page([6, 5, 4], "c4"), page([3, 2, 1], "c1")],
  pageParams: [null, "c7", "c4"],
};
const ids = ({ pages }: ListPages<{ id: number }>) =>
  pages.map(({ items }) => items.map(({ id }) => id));

it("puts new items first and keeps the others", () => {
  const after = withFirstPage(before, page([11, 10, 9], "c9"));
  expect(ids(after)).toEqual([
    [11, 10, 9],
    [8, 7],
    [6, 5, 4],
    [3, 2, 1],
  ]);
  expect(after.pageParams).toEqual([null, "c9", "c7", "c4"]);
  expect(after.pages.at(-1)?.next_cursor).toBe("c1");
});

it("drops the last page when new items fill a page", () => {
  const once = withFirstPage(before, page([11, 10, 9], "c9"));
  const after = withFirstPage(once, page([12, 11, 10], "c10"));
  expect(ids(after)).toEqual([
    [12, 11, 10],
    [9, 8, 7],
    [6, 5, 4],
  ]);
  expect(after.pageParams).toEqual([null, "c10", "c7"]);
  expect(after.pages.at(-1)?.next_cursor).toBe("c4");
});

it("keeps pages at their size and their number after many new items", () => {
  let pages = before;
  for (let id = 10; id < 210; id += 1) {
    pages = withFirstPage(pages, page([id, id - 1, id - 2], `c${id - 2}`));
    const lengths = pages.pages.map(({ items }) => items.length);
    const shown = ids(pages).flat();
    expect(Math.max(...lengths)).toBe(3);
    expect(shown.length).toBeGreaterThanOrEqual(9);
    expect(shown.length).toBeLessThan(12);
    // No gap, and "show more" continues after the last one.
    expect(shown).toEqual(shown.map((_, n) => id - n));
    const rest = pages.pages.map(({ items, next_cursor }) => [items.at(-1)?.id, next_cursor]);
    expect(rest).toEqual(rest.map(([end]) => [end, `c${end}`]));
  }
});

it("leaves out items that are gone", () => {
  expect(ids(withFirstPage(before, page([8, 6, 5], "c5")))).toEqual([[8, 6, 5], [4], [3, 2, 1]]);
});

it("keeps a short last page if nothing has changed", () => {
  const all = { pages: [...before.pages, page([0])], pageParams: [...before.pageParams, "c1"] };
  expect(withFirstPage(all, page([9, 8, 7], "c7"))).toEqual(all);
});

it("continues after the first page if all later items are gone or on it", () => {
  const two = { pages: before.pages.slice(0, 2), pageParams: [null, "c7"] };
  const after = withFirstPage(two, page([6, 5, 4], "new"));
  expect(after).toEqual({ pages: [page([6, 5, 4], "new")], pageParams: [null] });
});

it("keeps only the first page if there may be items in between", () => {
  const after = withFirstPage(before, page([14, 13, 12], "c12"));
  expect(ids(after)).toEqual([[14, 13, 12]]);
  expect(after.pageParams).toEqual([null]);
});

it("keeps only the first page if it holds all", () => {
  expect(ids(withFirstPage(before, page([])))).toEqual([[]]);
  expect(ids(withFirstPage(before, page([12, 11])))).toEqual([[12, 11]]);
  expect(ids(withFirstPage(before, page([9, 8])))).toEqual([[9, 8]]);
});

it("stays the same if nothing has changed", () => {
  expect(withFirstPage(before, page([9, 8, 7], "c7"))).toEqual(before);
});
