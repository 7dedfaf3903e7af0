import { expect, it } from "vitest";
import { changedFields, listDifference } from "./changes";

it("lists the fields that differ", () => {
  const before = { name: "a", max_slots: 2, job_types: ["x"], enabled: true, updated_at: "1" };
  const after = { name: "a", max_slots: 3, job_types: ["x"], enabled: true, updated_at: "2" };
  expect(changedFields(before, after)).toEqual([{ field: "max_slots", before: 2, after: 3 }]);
});

it("tells unbounded from zero, and nothing from null", () => {
  expect(changedFields({ max_slots: 0 }, { max_slots: null })).toHaveLength(1);
  expect(changedFields({}, { max_slots: null })).toEqual([]);
});

it("lists all fields of what was created or deleted", () => {
  expect(changedFields(null, { max_slots: 1, enabled: true })).toHaveLength(2);
  expect(changedFields({ max_slots: 1 }, null)).toEqual([
    { field: "max_slots", before: 1, after: undefined },
  ]);
});

it("compares lists", () => {
  expect(listDifference(["a", "b"], ["b", "c"])).toEqual({ added: ["c"], gone: ["a"] });
});
