import { expect, it } from "vitest";
import type { components } from "../../api";
import { laneNumbers, rateWords } from "./laneNumbers";

type Series = components["schemas"]["SeriesOut"];
const now = Date.parse("2026-11-17T12:30:30Z");

const series = (bucket_s: number, at: string, counts: Partial<Series["points"][0]>): Series => ({
  window_s: 1800,
  bucket_s,
  is_capped: false,
  points: [
    {
      at,
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
      ...counts,
    },
  ],
});

it("counts the figures of a lane", () => {
  const of = laneNumbers(
    series(60, "2026-11-17T12:29:00Z", { completed: 9 }),
    series(1800, "2026-11-17T12:00:30Z", { completed: 18, failed: 2, run_p95_s: 2.1 }),
    now,
  );
  const { spark, ...rest } = of("interactive");
  expect(spark).toHaveLength(29);
  expect(spark.at(-1)).toBe(9);
  // Four whole minutes and the half that has passed.
  expect(rest).toEqual({ donePerMinute: 2, runP95S: 2.1, failed: 2, ended: 20 });
  expect(of("system").ended).toBe(0);
});

it("has no rate before the first response", () => {
  expect(laneNumbers(undefined, undefined, now)("any")).toEqual({
    spark: [],
    donePerMinute: null,
    runP95S: null,
    failed: 0,
    ended: 0,
  });
});

it.each([
  [null, "—"],
  [0, "0"],
  [0.04, "< 0.1"],
  [0.44, "0.4"],
  [41.3, "41"],
])("shows %s per minute as %s", (rate, words) => expect(rateWords(rate)).toBe(words));
