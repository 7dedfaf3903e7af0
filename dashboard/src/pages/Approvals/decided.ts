import type { components } from "../../api";

type Job = components["schemas"]["JobOut"];

export type Decided = {
  job: Job;
  decision: "approved" | "rejected" | "expired";
  by: string | null;
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
  // A rejection or an expiry leaves no request to cancel.
  const isDecidedEnd = job.status === "cancelled" && job.cancel_requested_at === null;
  if (isDecidedEnd && job.cancelled_by !== null && job.finished_at !== null) {
    const decision = job.cancelled_by === "laneway" ? "expired" : "rejected";
    return { job, decision, by: job.cancelled_by, at: job.finished_at };
  }
  if (job.approved_by === null || job.approved_at === null) return null;
  return { job, decision: "approved", by: job.approved_by, at: job.approved_at };
}
