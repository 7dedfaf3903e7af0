import { describe, expect, test } from "vitest";
import { CHUNK, emptyTree, type JsonRow, openAll, showMore, toggle, visibleRows } from "./jsonTree";

function row(rows: ReturnType<typeof visibleRows>, path: string): JsonRow {
  const found = rows.find((each) => each.path === path);
  if (!found || "more" in found) throw new Error(`no row ${path}`);
  return found;
}

describe("visibleRows", () => {
  test("a scalar is one row", () => {
    expect(visibleRows(5, emptyTree)).toMatchObject([{ path: "", kind: "number", count: 0 }]);
  });

  test("small branches near the root are open, in document order", () => {
    const paths = visibleRows({ b: [1, { c: null }], a: "x" }, emptyTree).map((each) => each.path);
    expect(paths).toEqual(["", "/b", "/b/0", "/b/1", "/b/1/c", "/a"]);
  });

  test("keys with slashes and tildes stay distinct", () => {
    const paths = visibleRows({ "a/b": 1, a: { b: 2 }, "~": 3 }, emptyTree).map(
      (each) => each.path,
    );
    expect(new Set(paths).size).toBe(paths.length);
    expect(paths).toContain("/a~1b");
  });

  test("a toggled branch closes and opens again", () => {
    const value = { list: [1, 2] };
    const closed = toggle(emptyTree, row(visibleRows(value, emptyTree), "/list"));
    expect(visibleRows(value, closed)).toHaveLength(2);
    const opened = toggle(closed, row(visibleRows(value, closed), "/list"));
    expect(visibleRows(value, opened)).toHaveLength(4);
  });

  test("more children than a chunk stay hidden until asked for", () => {
    const value = Array.from({ length: 1000 }, (_, at) => at);
    const rows = visibleRows(value, emptyTree);
    expect(rows).toHaveLength(1 + CHUNK + 1);
    expect(rows.at(-1)).toMatchObject({ more: { parent: "", hidden: 1000 - CHUNK } });
    expect(visibleRows(value, showMore(emptyTree, "")).length).toBeGreaterThan(rows.length);
  });

  test("100,000 keys and a depth of 64 give few rows", () => {
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at]));
    expect(visibleRows(wide, emptyTree)).toHaveLength(1 + CHUNK + 1);
    let deep: unknown = "end";
    for (let at = 0; at < 64; at += 1) deep = { next: deep };
    expect(visibleRows(deep, emptyTree).length).toBeLessThan(6);
    expect(visibleRows(deep, openAll(deep))).toHaveLength(65);
  });

  test("opening all keeps within the budget", () => {
    const value = Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => ({ a: 1 })));
    expect(visibleRows(value, openAll(value, 500)).length).toBeLessThan(2000);
  });
});
