import { type InfiniteData, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type components, keyOf, type Pages, useApi, useApiPages } from "../../api";
import { type JobFilter, toQuery } from "../../filter";
import { heldBack, unseen } from "./steady";

export type Job = components["schemas"]["JobOut"];
type JobPage = components["schemas"]["JobPage"];

export const PAGE_SIZE = 50;

export type JobList = {
  jobs: Job[];
  pages: Pages<Job>;
  /** The number of jobs that came since, and whether there are more. */
  fresh: number;
  isMoreFresh: boolean;
  /** Load the list again, with what came since. */
  showFresh: () => Promise<void>;
  /** The search stopped at a job of this time. */
  lookedBackTo: string | null;
};

/** The jobs that match, page by page. Rows change in place; new jobs wait until they are asked for. */
export function useJobList(filter: JobFilter, isEnabled: boolean): JobList {
  const cache = useQueryClient();
  const params = { query: { ...toQuery(filter), limit: PAGE_SIZE } };
  const view = JSON.stringify(params);
  const options = { small: true, enabled: isEnabled };
  const pages = useApiPages("/jobs", params, { ...options, isSteady: true });
  const [accepted, setAccepted] = useState({ view: "", ids: new Set<string>() });
  const isLoaded = pages.isSuccess && !pages.isPlaceholderData;
  if (isLoaded && accepted.view !== view) {
    setAccepted({ view, ids: new Set(pages.items.map(({ id }) => id)) });
  }

  // The first page is read again whenever events say so, to know what came since.
  const firstPage = isLoaded ? pages.data?.pages[0] : undefined;
  const newestKey = keyOf("/jobs", params);
  const [watched, setWatched] = useState("");
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for every view
  useEffect(() => {
    if (firstPage === undefined) return;
    cache.setQueryData(newestKey, firstPage);
    setWatched(view);
  }, [view, firstPage === undefined]);
  const newest = useApi("/jobs", params, { ...options, enabled: isEnabled && watched === view });

  const { fresh, shown } = heldBack(pages.items, accepted.ids);
  const newestItems =
    newest.isPlaceholderData || watched !== view ? [] : (newest.data?.items ?? []);
  const found = isLoaded ? unseen(newestItems, shown, !pages.hasNextPage) : [];
  const freshIds = new Set([...fresh.map(({ id }) => id), ...found]);

  const showFresh = async () => {
    type Loaded = InfiniteData<JobPage>;
    cache.setQueryData<Loaded>(
      ["steady", ...newestKey],
      (list) => list && { pages: list.pages.slice(0, 1), pageParams: list.pageParams.slice(0, 1) },
    );
    const accept = () => setAccepted({ view: "", ids: new Set() });
    accept();
    await pages.refetch();
    accept();
  };
  const isWaiting = isLoaded && shown.length === 0 && freshIds.size > 0 && !pages.isFetching;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the first job comes
  useEffect(() => {
    if (isWaiting) void showFresh();
  }, [isWaiting]);

  return {
    jobs: shown,
    pages,
    fresh: freshIds.size,
    isMoreFresh: found.length >= PAGE_SIZE,
    showFresh,
    lookedBackTo: (pages.data?.pages.at(-1) as JobPage | undefined)?.looked_back_to ?? null,
  };
}
