import type { Query, QueryClient } from "@tanstack/react-query";
import type { components } from "./_generated/schema";
import type { ServerEvent } from "./events";
import { FlowJobs } from "./flow_jobs";
import { PageReads } from "./page_reads";

type Job = components["schemas"]["JobOut"];
type Status = components["schemas"]["StatusOut"];
type Page = { items: Job[] };

// The routes that a kind of event makes out of date, and the milliseconds between two reads of each.
const BY_JOBS: Record<string, number> = {
  "/jobs": 1500,
  "/jobs/counts": 3000,
  "/jobs/{job_id}": 700,
  "/jobs/{job_id}/explain": 1500,
  "/admin/workers/status": 1000,
  "/admin/workers/lanes": 1500,
  "/admin/workers/lanes/{name}": 1000,
  "/admin/limits": 2000,
  "/flows": 3000,
  "/flows/{flow_id}": 2000,
  "/admin/stats": 10_000,
  "/admin/stats/failures": 5000,
};
const DETAIL = "/jobs/{job_id}";
// Steady lists follow single jobs in place; an event for many jobs does not say which.
const STEADY = "steady ";
const STEADY_JOBS = `${STEADY}/jobs`;
const BY_MANY_JOBS: Record<string, number> = { [STEADY_JOBS]: 3000 };
// Lists whose changes are at their start, or arrive with events: only the first page is read again.
// Lists with the oldest first change anywhere: all their pages are read.
const BY_FIRST_PAGE = ["/jobs", "/admin/audit"];
const BY_CONTROLS: Record<string, number> = {
  "/admin/workers/status": 500,
  "/admin/workers/lanes": 500,
  "/admin/workers/lanes/{name}": 500,
  "/admin/workers/lanes/{name}/history": 500,
  "/admin/limits": 500,
  "/admin/schedules": 500,
  "/admin/changes": 500,
  "/admin/audit": 2000,
  "/jobs/{job_id}/explain": 1000,
};

/** Keeps the cache current with the events of the stream. */
export class LiveUpdates {
  #due = new Map<string, ReturnType<typeof setTimeout>>();
  #readAt = new Map<string, number>();
  // The jobs that changed since details were read; null: any.
  #changed: Set<string> | null = new Set();

  // Many jobs changed, on any page of a list.
  #hasManyChanged = false;
  // The statuses of the jobs that changed since lists were read, by id.
  #statuses = new Map<string, string>();
  readonly #pageReads: PageReads;
  readonly #flowJobs: FlowJobs;

  constructor(readonly cache: QueryClient) {
    this.#pageReads = new PageReads(cache);
    this.#flowJobs = new FlowJobs(cache);
  }

  apply(event: ServerEvent): void {
    if (event.name === "stream.opened") {
      // A resumed stream misses no event, but reads may have failed while the server was away.
      const { resumed } = event.data as { resumed: boolean };
      void this.cache.invalidateQueries({
        predicate: (query) => !resumed || query.state.status === "error",
      });
    } else if (event.name.startsWith("job.")) {
      const job = event.data as Job;
      this.#put(job);
      if (event.name === "job.progressed") return;
      // A read under way may bring an older state, which nothing else would replace.
      if (this.cache.isFetching({ queryKey: listKey(STEADY_JOBS) })) this.#outdate(BY_MANY_JOBS);
      this.#changed?.add(job.id);
      this.#statuses.set(job.id, job.status);
      this.#outdate(BY_JOBS);
    } else if (event.name === "jobs.changed") {
      this.#changed = null;
      this.#hasManyChanged = true;
      this.#outdate(BY_JOBS);
      this.#outdate(BY_MANY_JOBS);
    } else this.#outdate(BY_CONTROLS);
  }

  /** Read the shown jobs again: one of them may have been deleted. */
  readJobs(): void {
    this.#changed = null;
    this.#outdate({ [DETAIL]: BY_JOBS[DETAIL] ?? 0 });
  }

  /** Show the job's new state wherever it is shown. */
  #put(job: Job): void {
    const put = (page: Page): Page => ({ ...page, items: replaced(page.items, job) });
    for (const kind of ["pages", "steady"]) {
      this.cache.setQueriesData<{ pages: Page[] }>(
        { queryKey: [kind, "/jobs"] },
        (list) => list && { ...list, pages: list.pages.map(put) },
      );
    }
    this.#flowJobs.put(job);
    this.cache.setQueriesData<Page>({ queryKey: ["/jobs"] }, (page) => page && put(page));
    this.cache.setQueriesData<Job>({ queryKey: ["/jobs/{job_id}"] }, (shown) =>
      shown?.id === job.id ? { ...shown, ...job } : shown,
    );
    this.cache.setQueriesData<Status>(
      { queryKey: ["/admin/workers/status"] },
      (status) =>
        status && {
          ...status,
          active: status.active.map((each) =>
            each.id === job.id && each.attempt === job.attempt
              ? { ...each, progress: job.progress, cancel_requested_at: job.cancel_requested_at }
              : each,
          ),
        },
    );
  }

  #outdate(routes: Record<string, number>): void {
    for (const [route, pauseMs] of Object.entries(routes)) {
      if (this.#due.has(route)) continue;
      // One event reaches all tabs at once; their reads are spread a little.
      const soonest = 50 + Math.random() * Math.min(250, pauseMs / 4);
      const wait = Math.max(soonest, (this.#readAt.get(route) ?? 0) + pauseMs - Date.now());
      this.#due.set(
        route,
        setTimeout(() => this.#read(route, pauseMs), wait),
      );
    }
  }

  #read(route: string, pauseMs: number): void {
    this.#due.delete(route);
    this.#readAt.set(route, Date.now());
    const lists = listKey(route);
    const keys = route.startsWith(STEADY) ? [lists] : [[route], lists];
    // A read under way may miss the change. It is not cut off, because a busy queue would cut off
    // every read of a slow server; another one follows.
    const isReading = (queryKey: string[]) =>
      this.cache.isFetching({ queryKey }) > 0 || this.#pageReads.isReading(queryKey);
    if (keys.some(isReading)) {
      this.#outdate({ [route]: pauseMs });
      return;
    }
    // The pause is for one page: reads of lists with many loaded pages are as much rarer.
    this.#readAt.set(route, Date.now() + (this.#loadedPages(route) - 1) * pauseMs);
    const isOutdated = route === DETAIL ? this.#takeChanged() : () => true;
    if (BY_FIRST_PAGE.includes(route) && !this.#takeManyChanged(route)) {
      void this.cache.invalidateQueries({ queryKey: [route] });
      void this.#readLists(route, pauseMs);
      return;
    }
    for (const queryKey of keys) {
      const predicate = (query: { queryKey: readonly unknown[] }) => isOutdated(query.queryKey);
      void this.cache.invalidateQueries({ queryKey, predicate });
    }
  }

  /** The most pages that a list of this route would read at once; 1 if there is none. */
  #loadedPages(route: string): number {
    const isFirstOnly =
      BY_FIRST_PAGE.includes(route) && !(route === "/jobs" && this.#hasManyChanged);
    const counts = this.cache
      .getQueryCache()
      .findAll({ queryKey: listKey(route), type: "active" })
      .filter((query) => !isFirstOnly || isOldestFirst(query))
      .map((query) => (query.state.data as { pages: Page[] } | undefined)?.pages.length ?? 1);
    return Math.max(1, ...counts);
  }

  async #readLists(route: string, pauseMs: number): Promise<void> {
    const statuses = this.#takeStatuses(route);
    const lists = this.cache.getQueryCache().findAll({ queryKey: ["pages", route] });
    const reads = lists.map(async (query) => {
      if (!isOldestFirst(query)) return this.#pageReads.readFirst(query);
      const { queryKey } = query;
      if (isChanged(query, statuses)) void this.cache.invalidateQueries({ queryKey, exact: true });
      return true;
    });
    const areCurrent = await Promise.all(reads);
    if (areCurrent.includes(false)) this.#outdate({ [route]: pauseMs });
  }

  #takeStatuses(route: string): Map<string, string> {
    if (route !== "/jobs") return new Map();
    const statuses = this.#statuses;
    this.#statuses = new Map();
    return statuses;
  }

  #takeManyChanged(route: string): boolean {
    if (route !== "/jobs") return false;
    const hasChanged = this.#hasManyChanged;
    this.#hasManyChanged = false;
    return hasChanged;
  }

  #takeChanged(): (queryKey: readonly unknown[]) => boolean {
    const changed = this.#changed;
    this.#changed = new Set();
    return ([, params]) => {
      const id = (params as { path?: { job_id?: string } } | undefined)?.path?.job_id;
      return changed === null || (id !== undefined && changed.has(id));
    };
  }
}

/** The key of the lists of a route that are read page by page. */
function listKey(route: string): string[] {
  return route.startsWith(STEADY) ? ["steady", route.slice(STEADY.length)] : ["pages", route];
}

type ListQuery = { status?: string; oldest_first?: boolean };

function listQuery({ queryKey }: Query): ListQuery {
  return (queryKey[2] as { query?: ListQuery } | undefined)?.query ?? {};
}

function isOldestFirst(query: Query): boolean {
  return listQuery(query).oldest_first === true;
}

/** Whether a list of jobs shows one of these, or should. */
function isChanged(query: Query, statuses: Map<string, string>): boolean {
  const { status } = listQuery(query);
  const list = query.state.data as { pages: Page[] } | undefined;
  return (
    [...statuses.values()].some((each) => status === undefined || each === status) ||
    (list?.pages.some(({ items }) => items.some(({ id }) => statuses.has(id))) ?? false)
  );
}

function replaced(items: Job[], job: Job): Job[] {
  return items.some((each) => each.id === job.id)
    ? items.map((each) => (each.id === job.id ? { ...each, ...job } : each))
    : items;
}
