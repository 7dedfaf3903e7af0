import { describe, expect, it } from "vitest";
import type { components } from "../api";
import {
  counts,
  failuresByType,
  gridOf,
  loneValue,
  OTHER_TYPES,
  type Point,
  perMinute,
  waits,
} from "./grid";

const at = (time: string) => `2026-11-17T${time}Z`;
const now = Date.parse(at("12:30:30"));
const point = (time: string, change: Partial<Point> = {}): Point => ({
  at: at(time),
  lane: "interactive",
  job_type: null,
  started: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  wait_p50_s: null,
  wait_p95_s: null,
  run_p50_s: null,
  run_p95_s: null,
  ...change,
});
const series = (points: Point[]): components["schemas"]["SeriesOut"] => ({
  window_s: 300,
  bucket_s: 60,
  is_capped: false,
  points,
});

describe("gridOf", () => {
  it("has a bucket for every minute within the window, the last one unfinished", () => {
    const grid = gridOf(series([]), now);
    expect(grid.times.map((time) => new Date(time * 1000).toISOString().slice(11, 16))).toEqual([
      "12:26",
      "12:27",
      "12:28",
      "12:29",
      "12:30",
    ]);
    expect(grid.passedS).toBe(30);
  });

  it("sums the lanes of a bucket and leaves gaps at zero", () => {
    const grid = gridOf(
      series([
        point("12:25:00", { completed: 99 }),
        point("12:28:00", { completed: 2 }),
        point("12:28:00", { completed: 3, lane: "system" }),
      ]),
      now,
    );
    expect(counts(grid, "completed")).toEqual([0, 0, 5, 0, 0]);
  });

  it("follows the database if its clock is ahead", () => {
    const grid = gridOf(series([point("12:32:00")]), now);
    expect(grid.times.at(-1)).toBe(Date.parse(at("12:32:00")) / 1000);
  });
});

describe("perMinute", () => {
  it("scales the unfinished bucket by the time that has passed", () => {
    const grid = gridOf(series([point("12:30:00", { started: 4 })]), now);
    expect(perMinute(grid, "started").at(-1)).toBe(8);
  });

  it("leaves out a bucket that has only begun", () => {
    const grid = gridOf(series([]), Date.parse(at("12:30:05")));
    expect(perMinute(grid, "started").at(-1)).toBeNull();
  });
});

it("weighs medians by starts and takes the slowest p95", () => {
  const grid = gridOf(
    series([
      point("12:28:00", { started: 3, wait_p50_s: 1, wait_p95_s: 2 }),
      point("12:28:00", { started: 1, wait_p50_s: 5, wait_p95_s: 9, lane: "system" }),
    ]),
    now,
  );
  expect(waits(grid)).toEqual({
    p50: [null, null, 2, null, null],
    p95: [null, null, 9, null, null],
  });
});

it("shows the job types with the most failures and folds the rest", () => {
  const grid = gridOf(
    series([
      point("12:28:00", { job_type: "a", failed: 1 }),
      point("12:28:00", { job_type: "b", failed: 5 }),
      point("12:29:00", { job_type: "c", failed: 2 }),
      point("12:29:00", { job_type: "d", completed: 2 }),
    ]),
    now,
  );
  expect(failuresByType(grid, 2)).toEqual([
    { jobType: "b", values: [0, 0, 5, 0, 0] },
    { jobType: OTHER_TYPES, values: [0, 0, 1, 2, 0] },
  ]);
  expect(failuresByType(grid, 3).map(({ jobType }) => jobType)).toEqual(["b", "c", "a"]);
});

it.each([
  [[null, 3, undefined], 1],
  [[0], 0],
  [[null, 1, 2], null],
  [[null], null],
  [[], null],
])("finds the only value of %j", (values, place) => expect(loneValue(values)).toBe(place));
