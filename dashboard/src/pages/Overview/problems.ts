import type { components } from "../../api";
import { duration, plural } from "../../format";
import { href, lanePath } from "../../shell/url";

type Schemas = components["schemas"];
type Status = Schemas["StatusOut"];
type Lane = Schemas["LaneStatusOut"];
type Worker = Schemas["WorkerRowOut"];
type Failure = Schemas["FailureOut"];
type OldTransaction = Schemas["OldSnapshotOut"];

/** Something that keeps jobs from running or will soon, and where to act on it. */
export type DetectedProblem = {
  /** Stays the same while the problem lasts. */
  id: string;
  severity: "error" | "warning";
  title: string;
  detail: string;
  href: string;
};

export type ProblemInput = {
  status: Status;
  /** Ends by lane and minute. */
  series?: Schemas["SeriesOut"] | undefined;
  /** The failures of the last `FAILURE_WINDOW_S`. */
  failures?: Schemas["FailuresOut"] | undefined;
  /** Only for people who may see it. */
  database?: Schemas["StorageOut"] | undefined;
};

export const FAILURE_WINDOW_S = 600;
const BURST_FAILURES = 5;
const BURST_SHARE = 0.2;
// A lane that is full for a moment is a busy lane.
const FULL_WAIT_S = 60;
const OLD_TRANSACTION_S = 300;
// More of one kind become one line.
const MOST_OF_ONE_KIND = 3;

/** All problems, the worst first. */
export function findProblems(input: ProblemInput): DetectedProblem[] {
  const { status, database } = input;
  const found = [
    ...gateProblems(status),
    ...schemaProblems(database),
    ...unservedProblems(status),
    ...status.lanes.flatMap((lane) => laneProblems(lane, status)),
    ...burstProblems(input),
    ...silentProblems(status.silent),
    ...transactionProblems(status.oldest_transaction ?? database?.oldest_transaction),
    ...listenerProblems(database),
  ];
  return [
    ...found.filter(({ severity }) => severity === "error"),
    ...found.filter(({ severity }) => severity === "warning"),
  ];
}

/** The longest wait that is in order: half of the lane's stale timeout. */
export function waitBound(lane: Pick<Lane, "stale_timeout_minutes">): number {
  return lane.stale_timeout_minutes * 30;
}

function gateProblems(status: Status): DetectedProblem[] {
  if (!status.paused) return [];
  const waiting = status.lanes.reduce((sum, { depth }) => sum + depth, 0);
  const by = status.paused_by ? ` by ${status.paused_by}` : "";
  return [
    {
      id: "gate",
      severity: "error",
      title: "All lanes are paused",
      detail: `Paused${by}; no job starts, ${plural(waiting, "job")} due`,
      href: "/lanes",
    },
  ];
}

function laneProblems(lane: Lane, { paused, workers }: Status): DetectedProblem[] {
  if (lane.depth === 0 || paused) return [];
  const waiting = `${lane.depth_is_capped ? "at least " : ""}${plural(lane.depth, "job")} queued`;
  const at = { href: lanePath(lane.name) };
  if (!lane.enabled) {
    const state = lane.frozen ? "frozen" : "drained";
    return [
      {
        ...at,
        id: `closed:${lane.name}`,
        severity: "warning",
        title: `Lane ${lane.name} is ${state}`,
        detail: waiting,
      },
    ];
  }
  if (lane.max_slots === 0) {
    const title = `Lane ${lane.name} has no slots`;
    return [{ ...at, id: `full:${lane.name}`, severity: "error", title, detail: waiting }];
  }
  const wait = oldestServedWait(lane, workers);
  const isFull = lane.max_slots !== null && lane.slots_used >= lane.max_slots;
  const full = isFull
    ? `, ${lane.max_slots === 1 ? "its slot" : `all ${lane.max_slots} slots`} in use`
    : "";
  if (wait > waitBound(lane)) {
    return [
      {
        ...at,
        id: `wait:${lane.name}`,
        severity: "error",
        title: `Lane ${lane.name}: oldest wait ${duration(wait)}`,
        detail: `${waiting}${full}; the bound is ${duration(waitBound(lane))}`,
      },
    ];
  }
  if (!isFull || wait < FULL_WAIT_S) return [];
  return [
    {
      ...at,
      id: `full:${lane.name}`,
      severity: "warning",
      title: `Lane ${lane.name} is full`,
      detail: `${waiting}, the oldest for ${duration(wait)}${full}`,
    },
  ];
}

/** The oldest wait of jobs that a live worker takes: the others are a problem of their own. */
function oldestServedWait(lane: Lane, workers: Worker[]): number {
  return lane.waiting
    .filter(({ job_type }) => workers.some((worker) => serves(worker, job_type, lane.name)))
    .reduce((oldest, { oldest_wait_s }) => Math.max(oldest, oldest_wait_s ?? 0), 0);
}

/** Whether the worker takes new jobs of this type in this lane. */
export function serves(worker: Worker, jobType: string, lane: string): boolean {
  return (
    worker.job_types.includes(jobType) &&
    (worker.lanes === null || worker.lanes.includes(lane)) &&
    worker.drain_requested_at === null &&
    !worker.is_stopping
  );
}

function unservedProblems({ lanes, workers }: Status): DetectedProblem[] {
  const waiting = lanes.flatMap((lane) =>
    lane.waiting.filter(({ depth }) => depth > 0).map((load) => ({ ...load, lane: lane.name })),
  );
  const jobs = (of: typeof waiting) =>
    `${of.some((load) => load.depth_is_capped) ? "at least " : ""}${plural(
      of.reduce((sum, { depth }) => sum + depth, 0),
      "job",
    )} queued`;
  if (workers.length === 0 && waiting.length > 0) {
    const title = "No worker is running";
    return [{ id: "workers", severity: "error", title, detail: jobs(waiting), href: "/workers" }];
  }
  const unserved = waiting.filter(
    (load) => !workers.some((worker) => serves(worker, load.job_type, load.lane)),
  );
  return folded(
    unserved.map((load) => ({
      id: `unserved:${load.lane}:${load.job_type}`,
      severity: "error",
      title: `No live worker takes ${load.job_type}`,
      detail: `${jobs([load])} in lane ${load.lane}`,
      href: "/workers",
    })),
    (count) => ({
      id: "unserved",
      severity: "error",
      title: `No live worker takes ${plural(count, "job type")}`,
      detail: `${jobs(unserved)}: ${names(unserved.map(({ job_type }) => job_type))}`,
      href: "/workers",
    }),
  );
}

function silentProblems(silent: Worker[]): DetectedProblem[] {
  return folded(
    silent.map((worker) => ({
      id: `silent:${worker.id}`,
      severity: "warning",
      title: `Worker ${worker.name} silent for ${duration(worker.seen_s)}`,
      detail: `On ${worker.host}; it did not stop cleanly${
        worker.running > 0 ? `, ${plural(worker.running, "job")} in its hands` : ""
      }`,
      href: href("/workers", { show: "silent" }),
    })),
    (count) => ({
      id: "silent",
      severity: "warning",
      title: `${plural(count, "worker")} silent`,
      detail: names(silent.map(({ name }) => name)),
      href: href("/workers", { show: "silent" }),
    }),
  );
}

function burstProblems({ failures, series }: ProblemInput): DetectedProblem[] {
  const groups = new Map<string, Failure[]>();
  for (const each of failures?.items ?? []) {
    const key = `${each.lane}\n${each.job_type}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    const failed = group.reduce((sum, each) => sum + each.failures, 0);
    if (!first || failed < BURST_FAILURES) return [];
    const ended = Math.max(failed, series ? recentEnds(series, first.lane) : 0);
    if (failed / ended < BURST_SHARE) return [];
    return [
      {
        id: `burst:${first.lane}:${first.job_type}`,
        severity: "error" as const,
        title: `${plural(failed, "failure")} of ${first.job_type} in ${duration(FAILURE_WINDOW_S)}`,
        detail: `Most often ${first.error_type ?? "without an error type"}`,
        href: href("/failures", { job_type: first.job_type }),
      },
    ];
  });
}

function recentEnds(series: Schemas["SeriesOut"], lane: string): number {
  const newest = Math.max(0, ...series.points.map(({ at }) => Date.parse(at)));
  return series.points
    .filter((point) => point.lane === lane)
    .filter(({ at }) => Date.parse(at) > newest - FAILURE_WINDOW_S * 1000)
    .reduce((sum, { completed, failed, cancelled }) => sum + completed + failed + cancelled, 0);
}

function transactionProblems(old: OldTransaction | null | undefined): DetectedProblem[] {
  if (!old || old.age_s < OLD_TRANSACTION_S) return [];
  const who = `${old.application || "an application"} (pid ${old.pid}, user ${old.user})`;
  return [
    {
      id: `transaction:${old.pid}`,
      severity: "warning",
      title: `A transaction is open for ${duration(old.age_s)}`,
      detail: `${who} keeps PostgreSQL from removing dead rows`,
      href: "/settings/database",
    },
  ];
}

function listenerProblems(database: ProblemInput["database"]): DetectedProblem[] {
  if (!database || (database.listens && database.listener !== "polling")) return [];
  return [
    {
      id: "listener",
      severity: "warning",
      title: "The server polls instead of listening",
      detail: database.listens
        ? "Its listening connection is lost; live updates arrive later"
        : "Its settings turn listening off; live updates arrive later",
      href: "/settings/database",
    },
  ];
}

function schemaProblems(database: ProblemInput["database"]): DetectedProblem[] {
  const at = { href: "/settings/database" };
  const { pending = [], changed = [], unknown = [] } = database ?? {};
  const found: DetectedProblem[] = [];
  if (pending.length > 0) {
    const title = `The schema is behind by ${plural(pending.length, "migration")}`;
    const detail = "Run laneway db migrate";
    found.push({ ...at, id: "schema", severity: "error", title, detail });
  }
  if (changed.length > 0) {
    const title = `${plural(changed.length, "migration")} applied with another text`;
    found.push({ ...at, id: "changed", severity: "error", title, detail: names(changed) });
  }
  if (unknown.length > 0) {
    const title = "The schema is newer than this server";
    found.push({ ...at, id: "newer", severity: "warning", title, detail: names(unknown) });
  }
  return found;
}

function folded(
  all: DetectedProblem[],
  asOne: (count: number) => DetectedProblem,
): DetectedProblem[] {
  return all.length > MOST_OF_ONE_KIND ? [asOne(all.length)] : all;
}

function names(all: string[]): string {
  const shown = [...new Set(all)];
  const more = shown.length - MOST_OF_ONE_KIND;
  const first = shown.slice(0, MOST_OF_ONE_KIND).join(", ");
  return more > 0 ? `${first} and ${more} more` : first;
}
