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

it("puts new items first and moves none of the others out", () => {
  const after = withFirstPage(before, page([11, 10, 9], "c9"));
  expect(ids(after)).toEqual([
    [11, 10, 9],
    [8, 7, 6, 5, 4],
    [3, 2, 1],
  ]);
  expect(after.pageParams).toEqual(before.pageParams);
  expect(after.pages.at(-1)?.next_cursor).toBe("c1");
});

it("leaves out items that are gone", () => {
  expect(ids(withFirstPage(before, page([8, 6, 5], "c5")))).toEqual([[8, 6, 5], [4], [3, 2, 1]]);
});

it("keeps only the first page if there may be items in between", () => {
  const after = withFirstPage(before, page([14, 13, 12], "c12"));
  expect(ids(after)).toEqual([[14, 13, 12]]);
  expect(after.pageParams).toEqual([null]);
});

it("keeps only the first page if it holds all", () => {
  expect(ids(withFirstPage(before, page([])))).toEqual([[]]);
  expect(ids(withFirstPage(before, page([12, 11])))).toEqual([[12, 11]]);
});

it("stays the same if nothing has changed", () => {
  expect(withFirstPage(before, page([9, 8, 7], "c7"))).toEqual(before);
});
