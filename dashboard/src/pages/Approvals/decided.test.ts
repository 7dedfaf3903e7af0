import { expect, it } from "vitest";
import type { components } from "../../api";
import { decidedJobs } from "./decided";

type Job = components["schemas"]["JobOut"];

const job = (id: string, given: Partial<Job>) =>
  ({
    id,
    status: "completed",
    approved_by: null,
    approved_at: null,
    cancelled_by: null,
    cancel_requested_at: null,
    finished_at: null,
    ...given,
  }) as Job;

it("lists decisions of people and policies, the newest first", () => {
  const jobs = [
    job("approved", { approved_by: "eve", approved_at: "2026-11-18T01:00:00Z" }),
    job("needs none", { approved_at: "2026-11-18T01:00:00Z" }),
    job("rejected", {
      status: "cancelled",
      cancelled_by: "eve",
      finished_at: "2026-11-18T03:00:00Z",
    }),
    job("expired", {
      status: "cancelled",
      cancelled_by: "laneway",
      finished_at: "2026-11-18T02:00:00Z",
    }),
    job("cancelled", {
      status: "cancelled",
      cancelled_by: "ada",
      cancel_requested_at: "2026-11-18T00:30:00Z",
      finished_at: "2026-11-18T00:30:00Z",
    }),
  ];
  expect(
    decidedJobs([...jobs, ...jobs]).map(({ job: { id }, decision }) => [id, decision]),
  ).toEqual([
    ["rejected", "rejected"],
    ["expired", "expired"],
    ["approved", "approved"],
  ]);
});
