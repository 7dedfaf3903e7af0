import { count, plural } from "../format";
import type { Verb } from "./verbs";

/** How far a bulk action is, and what came of it. */
export type BulkProgress = {
  state: "running" | "done" | "failed" | "interrupted";
  /** Null: only the server knows, and it counted up to a bound. */
  total: number | null;
  done: number;
  /** The number of jobs that the server refused, by reason. */
  skipped: Record<string, number>;
  failed: Record<string, number>;
};

export const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((all, each) => all + each, 0);

export function addTo(counts: Record<string, number>, reason: string): Record<string, number> {
  return { ...counts, [reason]: (counts[reason] ?? 0) + 1 };
}

/** The percent that are handled; null if nobody knows how many there are. */
export function percentOf({ total, done, skipped, failed }: BulkProgress): number | null {
  if (total === null) return null;
  return total === 0 ? 100 : Math.min(100, (100 * (done + sum(skipped) + sum(failed))) / total);
}

/** `23 jobs retried, 2 skipped`. */
export function summary(verb: Verb, { done, skipped, failed }: BulkProgress): string {
  const parts = [`${plural(done, "job")} ${verb.past}`];
  if (sum(skipped) > 0) parts.push(`${count(sum(skipped))} skipped`);
  if (sum(failed) > 0) parts.push(`${count(sum(failed))} failed`);
  return parts.join(", ");
}
