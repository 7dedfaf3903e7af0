import type { components, operations } from "../api";
import { parseAge } from "./age";

export type JobStatus = components["schemas"]["Status"];
export type JobQuery = NonNullable<operations["list_jobs"]["parameters"]["query"]>;
type CountQuery = NonNullable<operations["count_jobs"]["parameters"]["query"]>;
export type BulkChoice = components["schemas"]["JobChoice"];

/** The conditions of a filter in the order in which they are shown; `q` is free text. */
export const FILTER_KEYS = [
  "status",
  "lane",
  "job_type",
  "error_type",
  "tag",
  "flow",
  "worker",
  "workspace",
  "since",
  "until",
  "older_than",
  "ended_since",
  "q",
] as const;

export type FilterKey = (typeof FILTER_KEYS)[number];

/** A filter of jobs as people write it. All conditions must hold. */
export type JobFilter = Partial<Record<FilterKey, string>>;

// The type makes a status that is new in the API an error here.
const STATUS_WORDS: Record<JobStatus, string> = {
  pending: "analysing",
  awaiting_approval: "awaiting approval",
  waiting: "waiting",
  approved: "queued",
  running: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

export const STATUSES = Object.keys(STATUS_WORDS) as JobStatus[];

/** The states of jobs that have ended. */
export const ENDED = ["completed", "failed", "cancelled"] as const satisfies JobStatus[];

/** The status for people, where there is no job whose `label` says it. */
export function statusWord(status: string): string {
  return STATUS_WORDS[status as JobStatus] ?? status.replaceAll("_", " ");
}

export function isEmpty(filter: JobFilter): boolean {
  return FILTER_KEYS.every((key) => !filter[key]);
}

/** The filter as parameters of the API. */
export function toQuery(filter: JobFilter): JobQuery {
  const { since, until, older_than, ended_since, ...same } = filter;
  const given: Record<string, string | number> = Object.fromEntries(
    Object.entries(same).filter(([, value]) => value !== ""),
  );
  const newerThan = since ? parseAge(since) : null;
  const olderThan = older_than ? parseAge(older_than) : null;
  if (newerThan !== null) given.newer_than = newerThan;
  else if (since) given.since = moment(since);
  const endedWithin = ended_since ? parseAge(ended_since) : null;
  if (endedWithin !== null) given.ended_within = endedWithin;
  else if (ended_since) given.ended_since = moment(ended_since);
  if (until) given.until = moment(until);
  if (olderThan !== null) given.older_than = olderThan;
  return given as JobQuery;
}

/** The filter of a bulk action. */
export function toChoice(filter: JobFilter): BulkChoice {
  return toQuery(filter) as BulkChoice;
}

const NOT_COUNTED = ["status", "flow", "worker", "q", "error_type", "ended_since"] as const;

/** The part of a filter by which jobs are counted. */
export function toCountQuery(filter: JobFilter): CountQuery {
  const query: Record<string, unknown> = { ...toQuery(filter) };
  for (const key of [...NOT_COUNTED, "ended_within"]) delete query[key];
  return query as CountQuery;
}

/** Whether counts by state take the whole filter into account. */
export function isCounted(filter: JobFilter): boolean {
  return NOT_COUNTED.every((key) => key === "status" || !filter[key]);
}

/** Whether a text is a date, or a date and a time. */
export function isMoment(text: string): boolean {
  return (
    /^\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/i.test(text) && !Number.isNaN(at(text))
  );
}

const at = (text: string) => Date.parse(text.replace(" ", "T"));
const moment = (text: string) => (isMoment(text) ? new Date(at(text)).toISOString() : text);
