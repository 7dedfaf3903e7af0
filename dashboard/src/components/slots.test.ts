import { expect, test } from "vitest";
import { slotLayout, slotWords } from "./slots";

test("few slots are boxes, many are a bar", () => {
  expect(slotLayout(3, 5)).toEqual({ kind: "boxes", used: 3, free: 2, over: 0 });
  expect(slotLayout(20, 20)).toMatchObject({ kind: "boxes", used: 20 });
  expect(slotLayout(12, 40)).toEqual({ kind: "bar", percent: 30, over: 0 });
});

test("jobs above a lowered limit are marked", () => {
  expect(slotLayout(4, 2)).toEqual({ kind: "boxes", used: 2, free: 0, over: 2 });
  expect(slotLayout(2, 0)).toEqual({ kind: "boxes", used: 0, free: 0, over: 2 });
  expect(slotLayout(50, 40)).toEqual({ kind: "bar", percent: 100, over: 10 });
  expect(slotLayout(30, 0)).toEqual({ kind: "bar", percent: 100, over: 30 });
});

test("lanes without a limit and closed lanes", () => {
  expect(slotLayout(3, null)).toEqual({ kind: "unbounded" });
  expect(slotLayout(0, 0)).toEqual({ kind: "none" });
});

test("words say the same", () => {
  expect(slotWords(1, 1)).toBe("1 of 1 slot in use");
  expect(slotWords(4, 2)).toBe("4 of 2 slots in use, 2 above the limit");
  expect(slotWords(3, null)).toBe("3 in use, no limit");
});
