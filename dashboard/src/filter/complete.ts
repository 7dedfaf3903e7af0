import { FILTER_KEYS, type FilterKey, STATUSES, statusWord } from "./jobFilter";
import { quoted, tokens } from "./text";

/** The names that the server knows, by the key that takes them. */
export type KnownValues = Partial<Record<FilterKey, readonly string[]>>;

export type Completion = {
  /** The whole text after it was chosen. */
  text: string;
  label: string;
  detail?: string;
  /** The condition is complete: it can be applied. */
  isWhole: boolean;
};

const HINTS: Record<Exclude<FilterKey, "q">, string> = {
  status: "such as failed or running",
  lane: "the lane's name",
  job_type: "such as ingestion",
  error_type: "such as TimeoutError",
  tag: "one of the job's tags",
  flow: "the id of a flow",
  worker: "a worker's name or id",
  workspace: "the workspace's name",
  since: "submitted since: 1h, 2d, or a date",
  until: "submitted before a date",
  older_than: "submitted longer ago than 15m, 1h …",
  ended_since: "ended since: 1h, 2d, or a date",
};
const EXAMPLES: KnownValues = {
  since: ["15m", "1h", "6h", "24h", "7d"],
  older_than: ["5m", "1h", "24h", "7d"],
  ended_since: ["15m", "1h", "6h", "24h", "7d"],
};
const MOST = 12;

/** Completions of the last word of a text: keys first, then the values of a key. */
export function complete(text: string, known: KnownValues): Completion[] {
  const last = /\s$/.test(text) || text === "" ? undefined : tokens(text).at(-1);
  const before = last === undefined ? text : text.slice(0, text.length - lengthOf(text));
  if (last === undefined || last.key === null) return keys(before, last?.value ?? "");
  const key = FILTER_KEYS.find((each) => each === last.key?.toLowerCase() && each !== "q");
  return key === undefined ? [] : values(before, key, last.value, known);
}

/** The length of the last word with its key and quotes. */
function lengthOf(text: string): number {
  return /(?:[A-Za-z_]+:)?(?:"(?:\\.|[^"\\])*"?|[^\s"]*)$/.exec(text)?.[0].length ?? 0;
}

function keys(before: string, typed: string): Completion[] {
  const wanted = typed.toLowerCase();
  return (Object.keys(HINTS) as Array<keyof typeof HINTS>)
    .filter((key) => key.startsWith(wanted) || (wanted.length > 1 && key.includes(wanted)))
    .map((key) => ({
      text: `${before}${key}:`,
      label: `${key}:`,
      detail: HINTS[key],
      isWhole: false,
    }));
}

function values(before: string, key: FilterKey, typed: string, known: KnownValues): Completion[] {
  const wanted = typed.toLowerCase();
  const all = key === "status" ? STATUSES : (known[key] ?? EXAMPLES[key] ?? []);
  const rank = (value: string) => (value.toLowerCase().startsWith(wanted) ? 0 : 1);
  return all
    .filter((value) => value.toLowerCase().includes(wanted))
    .sort((one, other) => rank(one) - rank(other))
    .slice(0, MOST)
    .map((value) => ({
      text: `${before}${key}:${quoted(value)}`,
      label: value,
      isWhole: true,
      ...(key === "status" && statusWord(value) !== value && { detail: statusWord(value) }),
    }));
}
