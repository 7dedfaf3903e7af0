import type { components, Me } from "../../api";
import { allows, covers, type OwnedJob } from "../../api/access";

type Job = Pick<
  components["schemas"]["JobDetailOut"],
  | "status"
  | "created_by"
  | "workspace"
  | "lane"
  | "run_at"
  | "cancel_requested_at"
  | "claimed_at"
  | "two_person"
  | "waits_for"
>;

export type JobAction =
  | "approve"
  | "reject"
  | "cancel"
  | "retry"
  | "run_now"
  | "reprioritize"
  | "clone"
  | "delete";

const ENDED = new Set<string>(["completed", "failed", "cancelled"]);
const WAITING = new Set<string>(["pending", "awaiting_approval", "approved", "waiting"]);

export const hasEnded = (status: string): boolean => ENDED.has(status);

/** Whether a person may see tracebacks, private messages and logs of this job. */
export function seesPrivate(me: Me, job: OwnedJob): boolean {
  return job.created_by === me.name || covers(me, "jobs:debug", job);
}

/** Whether the two-person rule keeps this person from approving. */
export function needsAnother(me: Me, job: Pick<Job, "two_person" | "created_by">): boolean {
  return job.two_person && (job.created_by === null || job.created_by === me.name);
}

/** What this person can do with the job as it is now. */
export function actionsFor(me: Me, job: Job, now: number): Set<JobAction> {
  const can = (permission: string) => covers(me, permission, job);
  const isEnded = hasEnded(job.status);
  const found = new Set<JobAction>();
  if (job.status === "awaiting_approval" && can("jobs:approve")) {
    if (!needsAnother(me, job)) found.add("approve");
    found.add("reject");
  }
  if (!isEnded && job.cancel_requested_at === null && can("jobs:cancel")) found.add("cancel");
  if ((job.status === "failed" || job.status === "cancelled") && can("jobs:cancel")) {
    found.add("retry");
  }
  const isDelayed = job.run_at !== null && Date.parse(job.run_at) > now;
  const isAsleep = job.waits_for?.kind === "sleep";
  if (((job.status === "approved" && isDelayed) || isAsleep) && can("jobs:cancel")) {
    found.add("run_now");
  }
  if (WAITING.has(job.status) && can("workers:manage")) found.add("reprioritize");
  if (allows(me, "jobs:submit")) found.add("clone");
  if (isEnded && can("jobs:cancel")) found.add("delete");
  return found;
}
