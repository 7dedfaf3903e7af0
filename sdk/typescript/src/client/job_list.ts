/** A list of jobs: iterate over all, or fetch one page. */

import type { Job, JobPage, Operations } from "../_generated/api.js";
import type { HttpConnection, RequestOptions } from "./http_connection.js";

type Query = NonNullable<Operations["list_jobs"]["query"]>;

/** The jobs to list: those that match every given field. */
export type JobFilter = Omit<Query, "limit" | "cursor">;
/** The size of a page, and the `next_cursor` of the page before. */
export type PagePosition = Pick<Query, "limit" | "cursor">;

const LARGEST_PAGE = 200;

export class JobList implements AsyncIterable<Job> {
  constructor(
    private readonly connection: HttpConnection,
    private readonly filter: JobFilter,
    private readonly options: RequestOptions,
  ) {}

  /** Returns at most `limit` jobs (50 by default) and the cursor of the next page. */
  page(position: PagePosition = {}): Promise<JobPage> {
    const query = { ...this.filter, limit: position.limit ?? 50, cursor: position.cursor };
    return this.connection.call("list_jobs", { query, signal: this.options.signal });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Job, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const page = await this.page({ limit: LARGEST_PAGE, cursor });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }
}
