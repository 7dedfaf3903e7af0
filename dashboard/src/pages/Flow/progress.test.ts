import { expect, it } from "vitest";
import { byName, holdsUp, talliesOf } from "./progress";

it("names failures first, and no job that only waits for others", () => {
  const jobs = ["waiting", "running", "completed", "failed", "running"].map((status) => ({
    status,
  }));
  expect(holdsUp(jobs).map(({ status, jobs: found }) => [status, found.length])).toEqual([
    ["failed", 1],
    ["running", 2],
  ]);
});

it("shows what has not ended as the rest", () => {
  const counts = { jobs: 10, completed: 4, failed: 1, cancelled: 2 };
  expect(talliesOf(counts)).toEqual({ completed: 4, failed: 1, cancelled: 2, unfinished: 3 });
});

it("counts jobs without a name by their type", () => {
  const job = (name: string | null, error_type: string | null = null) => ({
    status: "failed",
    job_type: "page",
    name,
    error_type,
  });
  const jobs = [job(null), job("last"), job(null), job(null, "TimeoutError")];
  expect(byName(jobs).map(({ name, size }) => [name, size])).toEqual([
    ["page", 2],
    ["last", 1],
    ["page (TimeoutError)", 1],
  ]);
});
