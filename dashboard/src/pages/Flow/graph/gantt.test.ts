import { expect, it } from "vitest";
import { criticalPath } from "./criticalPath";
import { ganttOf, ticksOf } from "./gantt";
import { graphOf } from "./jobGraph";

const at = (second: number) => new Date(second * 1000).toISOString();
const job = (
  id: string,
  after: string[],
  started: number | null,
  finished: number | null,
  owner: string | null = null,
) => ({
  id,
  job_type: id,
  after,
  owner,
  created_at: at(0),
  started_at: started === null ? null : at(started),
  finished_at: finished === null ? null : at(finished),
});
const JOBS = [
  job("list", [], 1, 5),
  job("slow", ["list"], 6, 30),
  job("fast", ["list"], 5, 8),
  job("join", ["slow", "fast"], 33, 40),
];
const alone = JOBS.map(({ id }, n) => ({ key: id, jobs: [n] }));

it("shows from when on a job could start", () => {
  const { start, end, rows } = ganttOf(JOBS, graphOf(JOBS), alone, 99_000);
  expect([start, end]).toEqual([0, 40_000]);
  // The clock does not matter once all have ended.
  expect(ganttOf(JOBS, graphOf(JOBS), alone, 0)).toEqual({ start, end, rows, ahead: 0 });
  expect(rows.map(({ key, from, started, to }) => [key, from, started, to])).toEqual([
    ["list", 0, 1000, 5000],
    ["fast", 5000, 5000, 8000],
    ["slow", 5000, 6000, 30_000],
    ["join", 30_000, 33_000, 40_000],
  ]);
});

it("lets open jobs reach until now and leaves out those that wait for others", () => {
  const jobs = [job("a", [], 1, null), job("b", ["a"], null, null), job("c", [], null, null)];
  const nodes = jobs.map(({ id }, n) => ({ key: id, jobs: [n] }));
  const { rows, end, ahead } = ganttOf(jobs, graphOf(jobs), nodes, 9000);
  expect(rows.map(({ key, started, to }) => [key, started, to])).toEqual([
    ["a", 1000, 9000],
    ["c", null, 9000],
  ]);
  expect([end, ahead]).toEqual([9000, 1]);
});

it("shows several jobs from the first start to the last end", () => {
  const nodes = [{ key: "all", jobs: [0, 1, 2, 3] }];
  expect(ganttOf(JOBS, graphOf(JOBS), nodes, 99_000).rows).toEqual([
    { key: "all", jobs: [0, 1, 2, 3], from: 0, started: 1000, to: 40_000 },
  ]);
});

it("has no rows without jobs", () => {
  expect(ganttOf([], graphOf([]), [], 7).rows).toEqual([]);
});

it("never shows an end before its start", () => {
  const cancelled = [job("a", [], 1, 10), job("b", ["a"], null, 4)];
  const nodes = cancelled.map(({ id }, n) => ({ key: id, jobs: [n] }));
  const { rows, start } = ganttOf(cancelled, graphOf(cancelled), nodes, 0);
  for (const { from, to } of rows) expect(from).toBeLessThanOrEqual(to);
  expect([start, rows.length]).toEqual([0, 2]);
});

it("finds the jobs that decided when the flow ended", () => {
  expect(criticalPath(JOBS, graphOf(JOBS))).toEqual([3, 1, 0]);
});

it("goes through sub-jobs, and from them to what their owner came after", () => {
  const jobs = [
    job("first", [], 0, 2),
    job("owner", ["first"], 2, 20),
    job("part", [], 3, 19, "owner"),
    job("other part", [], 3, 9, "owner"),
  ];
  expect(criticalPath(jobs, graphOf(jobs))).toEqual([1, 2, 0]);
});

it("ends where nothing has ended", () => {
  const jobs = [job("a", [], 1, null)];
  expect(criticalPath(jobs, graphOf(jobs))).toEqual([]);
});

it.each([
  [40, [0, 10, 20, 30, 40]],
  [3700, [0, 900, 1800, 2700, 3600]],
  [0.4, [0, 0.1, 0.2, 0.30000000000000004, 0.4]],
  [0, [0]],
])("marks an axis of %d s at %j", (seconds, expected) => {
  expect(ticksOf(seconds)).toEqual(expected);
});

it("marks an axis of months with few days", () => {
  expect(ticksOf(90 * 86_400).length).toBeLessThanOrEqual(7);
});
