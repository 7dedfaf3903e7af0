import type { Query, QueryClient } from "@tanstack/react-query";
import type { components } from "./_generated/schema";
import type { ServerEvent } from "./events";
import { type ListPages, withFirstPage } from "./first_page";

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
  "/admin/stats": 10_000,
  "/admin/stats/failures": 5000,
};
const DETAIL = "/jobs/{job_id}";
// Steady lists follow single jobs in place; an event for many jobs does not say which.
const STEADY = "steady ";
const BY_MANY_JOBS: Record<string, number> = { [`${STEADY}/jobs`]: 3000 };
// Lists whose changes are at their start, or arrive with events: only the first page is read again.
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

  constructor(readonly cache: QueryClient) {}

  apply(event: ServerEvent): void {
    if (event.name === "stream.opened") {
      if (!(event.data as { resumed: boolean }).resumed) void this.cache.invalidateQueries();
    } else if (event.name.startsWith("job.")) {
      const job = event.data as Job;
      this.#put(job);
      if (event.name === "job.progressed") return;
      this.#changed?.add(job.id);
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
    const keys = route.startsWith(STEADY)
      ? [["steady", route.slice(STEADY.length)]]
      : [[route], ["pages", route]];
    // A read under way may miss the change. It is not cut off, because a busy queue would cut off
    // every read of a slow server; another one follows.
    if (keys.some((queryKey) => this.cache.isFetching({ queryKey }) > 0)) {
      this.#outdate({ [route]: pauseMs });
      return;
    }
    const isOutdated = route === DETAIL ? this.#takeChanged() : () => true;
    if (BY_FIRST_PAGE.includes(route) && !this.#takeManyChanged(route)) {
      void this.cache.invalidateQueries({ queryKey: [route] });
      for (const query of this.cache.getQueryCache().findAll({ queryKey: ["pages", route] })) {
        void this.#readFirstPage(query);
      }
      return;
    }
    for (const queryKey of keys) {
      const predicate = (query: { queryKey: readonly unknown[] }) => isOutdated(query.queryKey);
      void this.cache.invalidateQueries({ queryKey, predicate });
    }
  }

  async #readFirstPage(query: Query): Promise<void> {
    const { queryKey } = query;
    const before = query.state.data as ListPages<{ id: unknown }> | undefined;
    const read = query.options.queryFn;
    if (!query.isActive() || typeof read !== "function" || (before?.pages.length ?? 0) < 2) {
      return this.cache.invalidateQueries({ queryKey, exact: true });
    }
    const { signal } = new AbortController();
    const asked = { client: this.cache, queryKey, signal, pageParam: null, meta: undefined };
    try {
      const first = (await (read as (asked: unknown) => unknown)(asked)) as ListPages<{
        id: unknown;
      }>["pages"][number];
      this.cache.setQueryData<ListPages<{ id: unknown }>>(
        queryKey,
        // More pages may have been loaded meanwhile.
        (now) => now && withFirstPage(now, first),
      );
    } catch {
      // The list shows the error of a read of its own.
      await this.cache.invalidateQueries({ queryKey, exact: true });
    }
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

function replaced(items: Job[], job: Job): Job[] {
  return items.some((each) => each.id === job.id)
    ? items.map((each) => (each.id === job.id ? { ...each, ...job } : each))
    : items;
}
