import { statusWords } from "./status";

/** The states of jobs in the order of a bar: what is done first, what is still to come last. */
export const BAR_STATES = [
  "completed",
  "failed",
  "cancelled",
  "running",
  "awaiting_approval",
  "pending",
  "approved",
  "waiting",
] as const;
// What a person should see first of several jobs.
const BY_URGENCY = [
  "failed",
  "awaiting_approval",
  "running",
  "approved",
  "pending",
  "waiting",
  "cancelled",
  "completed",
];
const WORDS: Record<string, string> = { approved: "queued", pending: "analysing" };

/** The number of jobs by status, in the order of a bar; states that are new here come last. */
export function countStates(jobs: Iterable<{ status: string }>): Record<string, number> {
  const counts: Record<string, number> = Object.fromEntries(BAR_STATES.map((each) => [each, 0]));
  for (const { status } of jobs) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** The status that stands for several jobs. */
export function urgentState(counts: Readonly<Record<string, number>>): string {
  return BY_URGENCY.find((status) => (counts[status] ?? 0) > 0) ?? "waiting";
}

/** `12 completed, 1 failed, 3 queued`. */
export function stateWords(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${stateWord(status)}`);
  return parts.join(", ") || "no jobs";
}

/** A status in the middle of a sentence. */
export function stateWord(status: string): string {
  return WORDS[status] ?? statusWords(status).toLowerCase();
}
