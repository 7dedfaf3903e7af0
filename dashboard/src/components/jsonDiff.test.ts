import { expect, test } from "vitest";
import { jsonDiff } from "./jsonDiff";

class Exact {
  constructor(readonly source: string) {}
}

test("equal values have no differences", () => {
  const value = { a: [1, { b: null }], c: "x" };
  expect(jsonDiff(value, structuredClone(value))).toEqual({ changes: [], isCut: false });
});

test("added, removed and changed paths are found in the order of the new value", () => {
  const before = { a: 1, gone: true, list: [1, 2, 3] };
  const after = { list: [1, 5], a: 1, fresh: { x: 1 } };
  expect(jsonDiff(before, after).changes).toEqual([
    { kind: "changed", path: "list[1]", before: 2, after: 5 },
    { kind: "removed", path: "list[2]", before: 3 },
    { kind: "added", path: "fresh", after: { x: 1 } },
    { kind: "removed", path: "gone", before: true },
  ]);
});

test("exact numbers compare by their digits", () => {
  const one = { n: new Exact("12345678901234567890") };
  expect(jsonDiff(one, { n: new Exact("12345678901234567890") }).changes).toEqual([]);
  expect(jsonDiff(one, { n: new Exact("12345678901234567891") }).changes).toHaveLength(1);
});

test("a change of kind is one change", () => {
  expect(jsonDiff({ a: [] }, { a: {} }).changes).toHaveLength(1);
  expect(jsonDiff({ a: null }, { a: 0 }).changes).toHaveLength(1);
  expect(jsonDiff(1, "1").changes).toMatchObject([{ path: "(whole value)" }]);
});

test("odd keys are quoted", () => {
  expect(jsonDiff({}, { "a.b": { "": 1 } }).changes).toMatchObject([{ path: '["a.b"]' }]);
  expect(jsonDiff({ "a.b": {} }, { "a.b": { c: 1 } }).changes).toMatchObject([
    { path: '["a.b"].c' },
  ]);
});

test("inherited names are not keys", () => {
  expect(jsonDiff({}, JSON.parse('{"constructor": 1}')).changes).toMatchObject([
    { kind: "added", path: "constructor" },
  ]);
});

test("huge differences are cut", () => {
  const after = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, at]));
  const { changes, isCut } = jsonDiff({}, after);
  expect(isCut).toBe(true);
  expect(changes.length).toBeLessThanOrEqual(500);
});
