/** A list of jobs: iterate over all, or fetch one page. */

import type { Job, JobPage, Operations } from "../_generated/api.js";
import type { HttpConnection, RequestOptions } from "./http_connection.js";
import { PagedList, type PagePosition } from "./paged_list.js";

type Query = NonNullable<Operations["list_jobs"]["query"]>;

/** The jobs to list: those that match every given field. */
export type JobFilter = Omit<Query, "limit" | "cursor">;

export class JobList extends PagedList<Job, JobPage> {
  constructor(
    private readonly connection: HttpConnection,
    private readonly filter: JobFilter,
    private readonly options: RequestOptions,
  ) {
    super();
  }

  page(position: PagePosition = {}): Promise<JobPage> {
    const query = { ...this.filter, limit: position.limit ?? 50, cursor: position.cursor };
    return this.connection.call("list_jobs", { query, signal: this.options.signal });
  }
}
