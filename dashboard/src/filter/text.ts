import { parseAge } from "./age";
import {
  ENDED,
  FILTER_KEYS,
  type FilterKey,
  isMoment,
  type JobFilter,
  STATUSES,
  statusWord,
} from "./jobFilter";
import { similar } from "./similar";

export type ParsedFilter = { filter: JobFilter; problems: string[] };

const KEYS = FILTER_KEYS.filter((key) => key !== "q");
const FLOW_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
// Words of other tools for the same.
const OTHER_NAMES: Record<string, FilterKey> = {
  state: "status",
  queue: "lane",
  type: "job_type",
  kind: "job_type",
  task: "job_type",
  workflow: "flow",
  error: "error_type",
  exception: "error_type",
  after: "since",
  newer_than: "since",
  before: "until",
  age: "older_than",
  finished: "ended_since",
  ended: "ended_since",
};

export type Token = { key: string | null; value: string; isOpen: boolean };

/** Split `lane:api tag:"a b" "free text"` into its parts; a quote that never ends stays open. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  const pattern = /(?:([A-Za-z_]+):)?(?:"((?:\\.|[^"\\])*)("|$)|([^\s"]*))/y;
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at] ?? "")) {
      at += 1;
      continue;
    }
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null || match[0] === "") break;
    const [all, key, quoted, end, bare] = match;
    at += all.length;
    const value = quoted === undefined ? (bare ?? "") : quoted.replace(/\\(.)/g, "$1");
    found.push({ key: key ?? null, value, isOpen: quoted !== undefined && end === "" });
  }
  return found;
}

/** Read a filter from its text form; every problem is a sentence. */
export function parseFilter(text: string): ParsedFilter {
  const filter: JobFilter = {};
  const problems: string[] = [];
  const free: string[] = [];
  for (const { key, value } of tokens(text)) {
    if (key === null) {
      if (value !== "") free.push(value);
      continue;
    }
    const known = KEYS.find((each) => each === key.toLowerCase());
    const problem = known ? valueProblem(known, value) : keyProblem(key, value);
    if (problem !== null) problems.push(problem);
    else if (known && filter[known] !== undefined && filter[known] !== value) {
      problems.push(`${known} is given twice. A filter takes one value of each kind.`);
    } else if (known) filter[known] = value;
  }
  if (free.length > 0) filter.q = free.join(" ");
  const conflict = conflictIn(filter);
  if (conflict !== null) problems.push(conflict);
  return { filter, problems };
}

function keyProblem(key: string, value: string): string {
  const meant = OTHER_NAMES[key.toLowerCase()] ?? similar(key, KEYS);
  const quoted = `To search for the text, write "${key}:${value}" in quotes.`;
  return meant
    ? `Unknown filter ${key}. Did you mean ${meant}?`
    : `Unknown filter ${key}. ${quoted}`;
}

/** What is wrong with a value; null if nothing is. */
export function valueProblem(key: FilterKey, value: string): string | null {
  if (value === "") return `${key} needs a value.`;
  if (key === "status" && !STATUSES.some((each) => each === value)) {
    const meant = similar(value, STATUSES);
    const hint = meant ? `Did you mean ${meant}?` : `Use one of ${STATUSES.join(", ")}.`;
    return `Unknown status ${value}. ${hint}`;
  }
  if (key === "flow" && !FLOW_ID.test(value)) return `flow:${value} is not the id of a flow.`;
  const isSince = key === "since" || key === "ended_since";
  if (isSince && parseAge(value) === null && !isMoment(value)) {
    return `${key}:${value} is neither an age such as 1h nor a date such as 2026-11-17.`;
  }
  if (key === "until" && !isMoment(value)) {
    return `until:${value} is not a date such as 2026-11-17 or 2026-11-17T08:00Z.`;
  }
  if (key === "older_than" && parseAge(value) === null) {
    return `older_than:${value} is not an age such as 15m, 1h or 2d.`;
  }
  return null;
}

/** Conditions that no job can meet together. */
export function conflictIn(filter: JobFilter): string | null {
  const newest = filter.older_than ? parseAge(filter.older_than) : null;
  const oldest = filter.since ? parseAge(filter.since) : null;
  if (newest !== null && oldest !== null && newest >= oldest) {
    return `No job is younger than ${filter.since} and older than ${filter.older_than}.`;
  }
  const hasError = !filter.status || filter.status === "failed" || filter.status === "cancelled";
  const hasEnd = !filter.status || ENDED.some((status) => status === filter.status);
  if (filter.ended_since && !hasEnd)
    return `Jobs that are ${statusWord(filter.status ?? "")} have not ended.`;
  if (filter.error_type && !hasError) return `Jobs that are ${filter.status} have no error.`;
  return null;
}

/** The text form of a filter. */
export function renderFilter(filter: JobFilter): string {
  return FILTER_KEYS.flatMap((key) => {
    const value = filter[key];
    if (!value) return [];
    return [key === "q" ? quoted(value, true) : `${key}:${quoted(value)}`];
  }).join(" ");
}

/** A value as it stands in the text form. */
export function quoted(value: string, isFree = false): string {
  const needsQuotes = /[\s"\\]/.test(value) || (isFree && /^[A-Za-z_]+:/.test(value));
  return needsQuotes ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
}
