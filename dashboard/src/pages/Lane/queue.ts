import type { components } from "../../api";

type Lane = Pick<components["schemas"]["LaneDetailOut"], "waiting" | "by_priority">;
type Load = components["schemas"]["TypeLoadOut"];

export type QueueRow = Load & { priority: number | null };
export type QueuedType = { jobType: string; depth: number; rows: QueueRow[] };

/** The waiting jobs by job type, the most first; within a type by priority, the highest first. */
export function byType({ waiting, by_priority }: Lane): QueuedType[] {
  return waiting
    .filter(({ depth }) => depth > 0)
    .map((load): QueuedType => {
      const rows = by_priority
        .filter(({ job_type, depth }) => job_type === load.job_type && depth > 0)
        .toSorted((a, b) => b.priority - a.priority);
      return {
        jobType: load.job_type,
        depth: load.depth,
        // Only so many priorities are listed; a type without any shows its sum.
        rows: rows.length > 0 ? rows : [{ ...load, priority: null }],
      };
    })
    .toSorted((a, b) => b.depth - a.depth || a.jobType.localeCompare(b.jobType));
}
