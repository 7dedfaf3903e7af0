import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { components } from "./_generated/schema";
import { FlowJobs } from "./flow_jobs";

type Job = components["schemas"]["JobOut"];

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const KEY = ["pages", "/flows/{flow_id}", { path: { flow_id: "f" } }];
const job = (id: string, status: string) =>
  ({ id, status, error: status === "failed" ? { type: "Oops" } : null }) as unknown as Job;

it("puts the changes of a moment into the shown flow together", () => {
  const cache = new QueryClient();
  const pages = [{ jobs: [{ id: "a", status: "running", after: ["x"] }] }, { jobs: [{ id: "b" }] }];
  cache.setQueryData(KEY, { pages });
  const put = vi.spyOn(cache, "setQueriesData");
  const flowJobs = new FlowJobs(cache);
  for (const status of ["running", "completed", "failed"]) flowJobs.put(job("a", status));
  flowJobs.put(job("elsewhere", "failed"));
  expect(put).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1000);
  expect(put).toHaveBeenCalledTimes(1);
  expect(cache.getQueryData(KEY)).toMatchObject({
    pages: [
      { jobs: [{ id: "a", status: "failed", after: ["x"], error_type: "Oops" }] },
      { jobs: [{ id: "b" }] },
    ],
  });
});

it("leaves a flow as it is when other jobs change", () => {
  const cache = new QueryClient();
  const list = { pages: [{ jobs: [{ id: "a", status: "running" }] }] };
  cache.setQueryData(KEY, list);
  const flowJobs = new FlowJobs(cache);
  flowJobs.put(job("b", "failed"));
  vi.advanceTimersByTime(1000);
  expect(cache.getQueryData(KEY)).toBe(list);
});

it("keeps nothing when no flow is shown", () => {
  new FlowJobs(new QueryClient()).put(job("a", "failed"));
  expect(vi.getTimerCount()).toBe(0);
});
