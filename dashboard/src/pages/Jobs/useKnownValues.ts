import { useApi, useApiPages, useCan } from "../../api";
import type { KnownValues } from "../../filter";
import type { Job } from "./useJobList";
import { useJobTypes } from "./useJobTypes";

/** The names to complete in a filter: what the server knows, and what the loaded jobs have. */
export function useKnownValues(jobs: readonly Job[], isNeeded: boolean): KnownValues {
  const enabled = useCan("workers:view") && isNeeded;
  const { types } = useJobTypes({ isNeeded: enabled });
  const lanes = useApiPages(
    "/admin/workers/lanes",
    { query: { limit: 200 } },
    { enabled, isWhole: true },
  );
  const status = useApi("/admin/workers/status", undefined, { enabled });
  const failures = useApi(
    "/admin/stats/failures",
    { query: { window_s: 86_400, top: 100 } },
    { enabled },
  );
  return {
    lane: distinct(
      lanes.items.map(({ name }) => name),
      jobs.map(({ lane }) => lane),
    ),
    job_type: distinct(
      types.map(({ name }) => name),
      jobs.map(({ job_type }) => job_type),
    ),
    worker: distinct(
      (status.data?.workers ?? []).map(({ name }) => name),
      jobs.flatMap(({ worker }) => worker ?? []),
    ),
    tag: distinct(jobs.flatMap(({ tags }) => tags)),
    workspace: distinct(jobs.map(({ workspace }) => workspace)),
    error_type: distinct(
      (failures.data?.items ?? []).flatMap(({ error_type }) => error_type ?? []),
      jobs.flatMap(({ error }) => error?.type ?? []),
    ),
  };
}

const distinct = (...lists: string[][]) => [...new Set(lists.flat())].sort();
