import { describe, expect, it } from "vitest";
import { heldBack, unseen } from "./steady";

const items = (...ids: string[]) => ids.map((id) => ({ id, created_at: id }));

describe("a steady list", () => {
  it("holds back what came in front", () => {
    const { fresh, shown } = heldBack(items("5", "4", "3", "2"), new Set(["3", "2"]));
    expect(fresh.map(({ id }) => id)).toEqual(["5", "4"]);
    expect(shown.map(({ id }) => id)).toEqual(["3", "2"]);
  });

  it("shows everything if nothing of before is left", () => {
    expect(heldBack(items("5", "4"), new Set(["1"])).fresh).toEqual([]);
  });

  it("shows more pages", () => {
    expect(heldBack(items("3", "2", "1"), new Set(["3", "2"])).shown).toHaveLength(3);
  });
});

describe("unseen items", () => {
  it("counts those that are new, also between others", () => {
    expect(unseen(items("5", "4", "3"), items("4", "2"), false)).toEqual(["5", "3"]);
  });

  it("leaves out those below the last loaded one", () => {
    expect(unseen(items("4", "3", "1"), items("4", "3"), false)).toEqual([]);
    expect(unseen(items("4", "3", "1"), items("4", "3"), true)).toEqual(["1"]);
  });
});
