/** A list of flows: iterate over all, or fetch one page. */

import type { Flow, Operations } from "../_generated/api.js";
import type { HttpConnection, RequestOptions } from "./http_connection.js";
import { type Page, PagedList, type PagePosition } from "./paged_list.js";

type Query = NonNullable<Operations["list_flows"]["query"]>;

/** The flows to list: those that match every given field. */
export type FlowFilter = Omit<Query, "limit" | "cursor">;

export class FlowList extends PagedList<Flow> {
  constructor(
    private readonly connection: HttpConnection,
    private readonly filter: FlowFilter,
    private readonly options: RequestOptions,
  ) {
    super();
  }

  page(position: PagePosition = {}): Promise<Page<Flow>> {
    const query = { ...this.filter, limit: position.limit ?? 50, cursor: position.cursor };
    return this.connection.call("list_flows", { query, signal: this.options.signal });
  }
}
