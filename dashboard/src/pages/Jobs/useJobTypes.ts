import { type components, useApiPages, useCan } from "../../api";

export type JobType = components["schemas"]["PublishedTypeOut"];

/** The published job types, as far as this person may see them. */
export function useJobTypes(isNeeded = true): { types: JobType[]; isKnown: boolean } {
  const mayRead = useCan("workers:view") && isNeeded;
  const found = useApiPages(
    "/admin/workers/types",
    { query: { limit: 200 } },
    { enabled: mayRead },
  );
  return { types: found.items, isKnown: mayRead && found.isSuccess };
}
