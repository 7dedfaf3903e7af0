import { UNFINISHED } from "../../components";

type Job = { status: string };

// The most urgent first. Failed jobs are shown with their errors. A job that only waits for others
// does not hold anything up.
const HOLDING = ["awaiting_approval", "running", "pending", "approved"];

/** The jobs on which a flow waits now, by their state. */
export function holdsUp<T extends Job>(jobs: readonly T[]): { status: string; jobs: T[] }[] {
  const byStatus = new Map<string, T[]>(HOLDING.map((status) => [status, []]));
  for (const job of jobs) byStatus.get(job.status)?.push(job);
  return [...byStatus].flatMap(([status, found]) =>
    found.length === 0 ? [] : [{ status, jobs: found }],
  );
}

type NamedJob = Job & { name: string | null; job_type: string };

/** Jobs by what people call them: their name, else their type. */
export function byName<T extends NamedJob>(jobs: readonly T[]) {
  const found = new Map<string, { name: string; job: T; size: number }>();
  for (const job of jobs) {
    const name = job.name ?? job.job_type;
    const known = found.get(name);
    if (known === undefined) found.set(name, { name, job, size: 1 });
    else known.size += 1;
  }
  return [...found.values()];
}

type Counts = { jobs: number; completed: number; failed: number; cancelled: number };

/** The number of jobs that have not ended. */
export function unfinishedOf({ jobs, completed, failed, cancelled }: Counts): number {
  return Math.max(0, jobs - completed - failed - cancelled);
}

/** The counts of a flow as a bar shows them. */
export function talliesOf(counts: Counts): Record<string, number> {
  const { completed, failed, cancelled } = counts;
  return { completed, failed, cancelled, [UNFINISHED]: unfinishedOf(counts) };
}
