import type { components, OwnedJob } from "../api";
import type { IconName } from "../components";
import type { JobFilter, JobStatus } from "../filter";

export type Job = components["schemas"]["JobOut"];
export type VerbId = components["schemas"]["BulkVerb"];
export type ChosenJob = OwnedJob & Pick<Job, "id" | "status" | "run_at" | "waits_for">;

/** An action on many jobs. */
export type Verb = {
  id: VerbId;
  label: string;
  /** What happened to the jobs: `23 retried`. */
  past: string;
  permission: string;
  icon: IconName;
  isDangerous: boolean;
  /** The jobs that it takes; all others are skipped. */
  takes: readonly JobStatus[];
  /** What happens, and whether it can be undone. */
  effect: string;
  needs: "reason" | "priority" | null;
  /** A further condition of the jobs. No filter has it: the server skips jobs that do not meet it. */
  only?: { test: (job: ChosenJob) => boolean; otherwise: string };
};

const WAITING = ["pending", "awaiting_approval", "approved", "waiting"] as const;

export const VERBS: readonly Verb[] = [
  {
    id: "retry",
    label: "Retry",
    past: "retried",
    permission: "jobs:cancel",
    icon: "retry",
    isDangerous: false,
    takes: ["failed", "cancelled"],
    effect:
      "Retried jobs are queued again with a new retry budget and continue from their last checkpoint.",
    needs: null,
  },
  {
    id: "approve",
    label: "Approve",
    past: "approved",
    permission: "jobs:approve",
    icon: "check",
    isDangerous: false,
    takes: ["awaiting_approval"],
    effect:
      "Approved jobs may start at once. Jobs that need another person’s approval are skipped.",
    needs: null,
  },
  {
    id: "reject",
    label: "Reject",
    past: "rejected",
    permission: "jobs:approve",
    icon: "cancelled",
    isDangerous: true,
    takes: ["awaiting_approval"],
    effect: "Rejected jobs end as cancelled, with your reason.",
    needs: "reason",
  },
  {
    id: "run_now",
    label: "Run now",
    past: "made due",
    permission: "jobs:cancel",
    icon: "bolt",
    isDangerous: false,
    takes: ["pending", "approved", "waiting"],
    effect:
      "Jobs that are made due no longer wait for their time. They start when their lane has a free slot.",
    needs: null,
    only: {
      test: ({ status, run_at, waits_for }) =>
        status === "waiting"
          ? waits_for?.kind === "sleep"
          : run_at !== null && Date.parse(run_at) > Date.now(),
      otherwise: "that wait for no time",
    },
  },
  {
    id: "reprioritize",
    label: "Set priority",
    past: "given the new priority",
    permission: "workers:manage",
    icon: "arrow-up",
    isDangerous: false,
    takes: WAITING,
    effect: "Within a lane, jobs of a higher priority start first.",
    needs: "priority",
  },
  {
    id: "cancel",
    label: "Cancel",
    past: "cancelled",
    permission: "jobs:cancel",
    icon: "stop",
    isDangerous: true,
    takes: [...WAITING, "running"],
    effect:
      "Waiting jobs never start; running ones are asked to stop. Cancelled jobs can be retried later.",
    needs: null,
  },
  {
    id: "delete",
    label: "Delete",
    past: "deleted",
    permission: "jobs:cancel",
    icon: "trash",
    isDangerous: true,
    takes: ["completed", "failed", "cancelled"],
    effect: "Jobs are removed with their attempts and logs. This cannot be undone.",
    needs: null,
  },
];

export function verbOf(id: VerbId): Verb {
  const found = VERBS.find((verb) => verb.id === id);
  if (found === undefined) throw new Error(`unknown verb ${id}`);
  return found;
}

export function takes(verb: Verb, job: ChosenJob): boolean {
  return verb.takes.includes(job.status) && (verb.only?.test(job) ?? true);
}

/** Whether a verb can take a job that a filter finds. */
export function fits(verb: Verb, filter: JobFilter): boolean {
  return !filter.status || verb.takes.some((status) => status === filter.status);
}

/** The jobs of a bulk action: some that were chosen, or all that match. */
export type BulkTarget =
  | { kind: "jobs"; jobs: readonly ChosenJob[] }
  | { kind: "filter"; filter: JobFilter };

/** A reason or a priority, where the verb needs one. */
export type BulkArguments = { reason?: string; priority?: number };
