import { describe, expect, it } from "vitest";
import { Problem } from "../../api/problem";
import {
  appliesWithin,
  changeWords,
  fieldError,
  isAboutFields,
  LANE_WORDS,
  laneChange,
  NEW_LANE,
} from "./settings";

describe("laneChange", () => {
  it("sends only what differs", () => {
    expect(laneChange(NEW_LANE, { ...NEW_LANE, max_slots: 3 })).toEqual({ max_slots: 3 });
    expect(laneChange(NEW_LANE, { ...NEW_LANE })).toEqual({});
  });

  it("sends null for unbounded", () => {
    expect(laneChange(NEW_LANE, { ...NEW_LANE, max_slots: null })).toEqual({ max_slots: null });
  });
});

describe("changeWords", () => {
  it.each([
    [{ max_slots: 3 }, "1 → 3 slots"],
    [{ max_slots: null }, "slots 1 → unbounded"],
    [{ enabled: false }, "drained"],
    [{ max_slots: 2, poll_interval_ms: 500 }, "1 → 2 slots, poll interval 5 s → 500 ms"],
    [{ lease_seconds: 60 }, "lease 30 s → 1 min"],
    [{ job_types: ["a", "b"] }, "with a, b"],
  ])("says %o as %s", (change, words) => {
    expect(changeWords(NEW_LANE, { ...NEW_LANE, ...change })).toBe(words);
  });
});

it("names the job types that leave", () => {
  const before = { ...NEW_LANE, job_types: ["a", "b"] };
  expect(changeWords(before, { ...before, job_types: ["b", "c"] })).toBe("with c, without a");
});

it("says when a change is in force", () => {
  expect(appliesWithin({ poll_interval_ms: 2000 })).toBe("applies within 2 s");
});

it("shows values as people read them", () => {
  expect(LANE_WORDS.value("max_slots", null)).toBe("unbounded");
  expect(LANE_WORDS.value("stale_timeout_minutes", 90)).toBe("1 h 30 min");
  expect(LANE_WORDS.value("enabled", false)).toBe("drained");
  expect(LANE_WORDS.value("job_types", [])).toBe("none");
  expect(LANE_WORDS.name("some_new_setting")).toBe("some new setting");
});

describe("fieldError", () => {
  const error = new Problem(422, {
    errors: [
      { field: "max_slots", rule: "must be at most 10000" },
      { field: "job_types[0]", rule: "is in lane system" },
    ],
  });

  it("finds the rule of a field", () => {
    expect(fieldError(error, "max_slots")).toBe("must be at most 10000");
    expect(fieldError(error, "job_types")).toBe("is in lane system");
    expect(fieldError(error, "lease_seconds")).toBeNull();
    expect(fieldError(null, "max_slots")).toBeNull();
  });

  it("knows whether the form shows all of it", () => {
    expect(isAboutFields(error, ["max_slots", "job_types"])).toBe(true);
    expect(isAboutFields(error, ["max_slots"])).toBe(false);
    expect(isAboutFields(new Problem(409, {}), ["max_slots"])).toBe(false);
  });
});
