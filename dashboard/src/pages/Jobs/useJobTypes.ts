import { type components, useApiPages, useCan } from "../../api";

export type JobType = components["schemas"]["PublishedTypeOut"];

type Options = { isNeeded?: boolean; isWhole?: boolean };

/** The published job types, as far as this person may see them; the first 200 if not whole. */
export function useJobTypes({ isNeeded = true, isWhole = true }: Options = {}): {
  types: JobType[];
  isKnown: boolean;
} {
  const mayRead = useCan("workers:view") && isNeeded;
  const found = useApiPages(
    "/admin/workers/types",
    { query: { limit: 200 } },
    { enabled: mayRead, isWhole },
  );
  return { types: found.items, isKnown: mayRead && found.isSuccess && !found.hasNextPage };
}
