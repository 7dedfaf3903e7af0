import type { components } from "../../api";

type Job = Pick<
  components["schemas"]["JobOut"],
  "status" | "cancel_requested_at" | "cancelled_by" | "cancel_reason"
>;

export type Cancel = {
  /** "after": a job that it comes after failed or was cancelled. */
  kind: "cancelled" | "rejected" | "expired" | "after";
  by: string | null;
  /** The words of the person who cancelled or rejected it, or the job that it comes after. */
  reason: string | null;
};

const PREFIX = /^rejected: /;
const PARENT = /^after job /;

/**
 * How a cancelled job came to its end. Only a request to cancel has a time: a rejection, an expiry
 * and the end of a job before this one have none.
 */
export function cancelOf(job: Job): Cancel {
  const { cancelled_by: by, cancel_reason: reason } = job;
  if (job.cancel_requested_at !== null || by === null) return { kind: "cancelled", by, reason };
  if (by === "laneway") {
    if (reason !== null && PARENT.test(reason)) return { kind: "after", by: null, reason };
    return { kind: "expired", by: null, reason: null };
  }
  return { kind: "rejected", by, reason: reason?.replace(PREFIX, "") ?? null };
}
