import { expect, it } from "vitest";
import { ExactNumber } from "../../api/json";
import { actionWords, changeWords, valueWords } from "./changes";

it.each([
  [null, { a: 1 }, null],
  [{ a: 1 }, { a: 1 }, null],
  [{ max_slots: 2, x: 1 }, { max_slots: 3, x: 1 }, "max_slots 2 → 3"],
  [{ run_at: null }, { run_at: "now" }, "run_at null → now"],
  [{}, { a: [1] }, "a none → [1]"],
  [{ a: 1, b: 1, c: 1 }, { a: 2, b: 2, c: 2 }, "a 1 → 2, b 1 → 2 and 1 more"],
  [{ a: new ExactNumber("12345678901234567890") }, { a: 1 }, "a 12345678901234567890 → 1"],
])("puts %j → %j into words", (before, after, words) => {
  expect(changeWords(before, after)).toBe(words);
});

it("cuts long values", () => {
  expect(changeWords({ a: "x".repeat(99) }, { a: "y" })).toHaveLength(2 + 40 + 4);
});

it("says actions in words", () => {
  expect(actionWords("lane.type_moved")).toBe("lane type moved");
  expect(actionWords("GET /admin/roles")).toBe("GET /admin/roles");
});

it("names a few values of something new", () => {
  expect(valueWords({ id: "1", role: "viewer", lanes: null, scope: "all", granted_at: "x" })).toBe(
    "role viewer, scope all",
  );
  expect(valueWords({ filter: {}, matched: 47, upto: 260 })).toBe("matched 47");
});
