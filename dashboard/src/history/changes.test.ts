import { expect, it } from "vitest";
import { changedFields, listDifference, restorationOf } from "./changes";

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

it("undoes the newest change by naming the one before it", () => {
  const older = { id: 1, before: null, after: { max_slots: 2 } };
  const newest = { id: 2, before: { max_slots: 2 }, after: { max_slots: 3 } };
  expect(restorationOf(newest, [newest, older])).toEqual({
    isUndo: true,
    to: 1,
    from: { max_slots: 3 },
    target: { max_slots: 2 },
  });
  expect(restorationOf(newest, [newest])).toMatchObject({ isUndo: true, to: null });
  expect(restorationOf(older, [newest, older])).toEqual({
    isUndo: false,
    to: 1,
    from: { max_slots: 3 },
    target: { max_slots: 2 },
  });
});

it("undoes a deletion, which has no state to name", () => {
  const deleted = { id: 2, before: { max_slots: 2 }, after: null };
  const again = { id: 3, before: null, after: { max_slots: 2 } };
  expect(restorationOf(again, [again, deleted])).toMatchObject({ to: null });
});
