import type { components } from "../../api";

type Job = Pick<
  components["schemas"]["JobOut"],
  "status" | "cancel_requested_at" | "cancelled_by" | "cancel_reason"
>;

export type Cancel = {
  kind: "cancelled" | "rejected" | "expired";
  by: string | null;
  /** The words of the person who cancelled or rejected it. */
  reason: string | null;
};

const PREFIX = /^rejected: /;

/** How a cancelled job came to its end. A rejection or an expiry leaves no request to cancel. */
export function cancelOf(job: Job): Cancel {
  const { cancelled_by: by, cancel_reason: reason } = job;
  if (job.cancel_requested_at !== null || by === null) return { kind: "cancelled", by, reason };
  if (by === "laneway") return { kind: "expired", by: null, reason: null };
  return { kind: "rejected", by, reason: reason?.replace(PREFIX, "") ?? null };
}
