import { expect, it } from "vitest";
import { byName, holdsUp, talliesOf } from "./progress";

it("names decisions first, and no job that has ended or only waits for others", () => {
  const jobs = ["waiting", "running", "completed", "failed", "awaiting_approval", "running"];
  const found = holdsUp(jobs.map((status) => ({ status })));
  expect(found.map(({ status, jobs: held }) => [status, held.length])).toEqual([
    ["awaiting_approval", 1],
    ["running", 2],
  ]);
});

it("shows what has not ended as the rest", () => {
  const counts = { jobs: 10, completed: 4, failed: 1, cancelled: 2 };
  expect(talliesOf(counts)).toEqual({ completed: 4, failed: 1, cancelled: 2, unfinished: 3 });
});

it("counts jobs without a name by their type", () => {
  const job = (name: string | null) => ({ status: "running", job_type: "page", name });
  const jobs = [job(null), job("last"), job(null)];
  expect(byName(jobs).map(({ name, size }) => [name, size])).toEqual([
    ["page", 2],
    ["last", 1],
  ]);
});
