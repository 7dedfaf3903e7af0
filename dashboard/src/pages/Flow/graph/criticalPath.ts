import type { JobGraph } from "./jobGraph";

type Timed = { finished_at: string | null };

/**
 * The jobs that decided when a flow ended, the last one first: the one that ended last, the one of
 * those before it that ended last, and so on. A shorter run of any other job would change nothing.
 */
export function criticalPath(jobs: readonly Timed[], { parents, owners }: JobGraph): number[] {
  const ends = jobs.map(({ finished_at }) => (finished_at === null ? 0 : Date.parse(finished_at)));
  const subJobs = new Map<number, number[]>();
  for (const [job, owner] of owners.entries()) {
    if (owner === null) continue;
    const known = subJobs.get(owner);
    if (known === undefined) subJobs.set(owner, [job]);
    else known.push(job);
  }
  const latest = (places: readonly number[]) =>
    places.reduce<number | null>(
      (found, place) =>
        (ends[place] ?? 0) > (found === null ? 0 : (ends[found] ?? 0)) ? place : found,
      null,
    );
  const before = (place: number) => {
    const found = [...(parents[place] ?? []), ...(subJobs.get(place) ?? [])];
    const owner = owners[place];
    return found.length === 0 && owner != null ? (parents[owner] ?? []) : found;
  };
  const path: number[] = [];
  const seen = new Set<number>();
  let at = latest(jobs.map((_, place) => place));
  while (at !== null && !seen.has(at)) {
    seen.add(at);
    path.push(at);
    at = latest(before(at));
  }
  return path;
}
