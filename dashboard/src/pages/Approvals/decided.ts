import type { components } from "../../api";
import { cancelOf } from "../Job/cancel";

type Job = components["schemas"]["JobOut"];

export type Decided = {
  job: Job;
  decision: "approved" | "rejected" | "expired";
  by: string | null;
  reason: string | null;
  at: string;
};

/** Decisions about jobs, the newest first. */
export function decidedJobs(jobs: readonly Job[]): Decided[] {
  const seen = new Map(jobs.map((job) => [job.id, job]));
  return [...seen.values()]
    .flatMap((job) => decisionOf(job) ?? [])
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

/** The last decision about a job; null if it needed none, or was cancelled for another reason. */
function decisionOf(job: Job): Decided | null {
  if (job.status === "cancelled" && job.finished_at !== null) {
    const { kind, by, reason } = cancelOf(job);
    if (kind === "rejected" || kind === "expired")
      return { job, decision: kind, by, reason, at: job.finished_at };
  }
  if (job.approved_by === null || job.approved_at === null) return null;
  return { job, decision: "approved", by: job.approved_by, reason: null, at: job.approved_at };
}
