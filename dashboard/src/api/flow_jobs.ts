import type { QueryClient } from "@tanstack/react-query";
import type { components } from "./_generated/schema";

type Job = components["schemas"]["JobOut"];
type FlowJob = components["schemas"]["FlowJobOut"];
type Pages = { pages: { jobs: FlowJob[] }[] };

const KEY = ["pages", "/flows/{flow_id}"];
// A flow may have ten thousand jobs: their changes are put in together.
const PAUSE_MS = 250;

/** Puts the changes of jobs into the flows that are shown. */
export class FlowJobs {
  #changed = new Map<string, Job>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly cache: QueryClient) {}

  put(job: Job): void {
    if (this.cache.getQueryCache().find({ queryKey: KEY, exact: false }) === undefined) return;
    this.#changed.set(job.id, job);
    this.#timer ??= setTimeout(() => this.#putAll(), PAUSE_MS);
  }

  #putAll(): void {
    this.#timer = undefined;
    const changed = this.#changed;
    this.#changed = new Map();
    const put = (item: FlowJob): FlowJob => {
      const job = changed.get(item.id);
      return job === undefined ? item : { ...item, ...shown(job) };
    };
    this.cache.setQueriesData<Pages>({ queryKey: KEY }, (list) =>
      list?.pages.some(({ jobs }) => jobs.some(({ id }) => changed.has(id)))
        ? { ...list, pages: list.pages.map((page) => ({ ...page, jobs: page.jobs.map(put) })) }
        : list,
    );
  }
}

function shown({ status, priority, attempt, started_at, finished_at, error }: Job) {
  return { status, priority, attempt, started_at, finished_at, error_type: error?.type ?? null };
}
