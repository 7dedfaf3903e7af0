import type { Query, QueryClient } from "@tanstack/react-query";
import { type ListPages, withFirstPage } from "./first_page";

type Pages = ListPages<{ id: unknown }>;

/** Reads of the first page of lists of which more pages are loaded, at most one at a time per list. */
export class PageReads {
  #running = new Set<Query>();

  constructor(readonly cache: QueryClient) {}

  isReading(queryKey: readonly unknown[]): boolean {
    const found = this.cache.getQueryCache().findAll({ queryKey });
    return found.some((query) => this.#running.has(query));
  }

  /** Read a list again by its first page; false if another read began meanwhile and may miss a change. */
  async readFirst(query: Query): Promise<boolean> {
    const { queryKey } = query;
    const before = query.state.data as Pages | undefined;
    const read = query.options.queryFn;
    if (!query.isActive() || typeof read !== "function" || (before?.pages.length ?? 0) < 2) {
      void this.cache.invalidateQueries({ queryKey, exact: true });
      return true;
    }
    const outdated = new AbortController();
    const { signal } = outdated;
    // A read that begins later is newer, and it replaces the pages that were loaded when it began.
    const unsubscribe = this.cache.getQueryCache().subscribe((event) => {
      const isRead = event.type === "updated" && event.action.type === "fetch";
      if (event.query === query && (isRead || event.type === "removed")) outdated.abort();
    });
    this.#running.add(query);
    const asked = { client: this.cache, queryKey, signal, pageParam: null, meta: undefined };
    const first = await (read as (asked: unknown) => Promise<Pages["pages"][number]>)(asked).catch(
      () => null,
    );
    unsubscribe();
    this.#running.delete(query);
    if (signal.aborted) return false;
    if (first !== null) {
      this.cache.setQueryData<Pages>(queryKey, (now) => now && withFirstPage(now, first));
    } else {
      // The list reads again and shows the error.
      void this.cache.invalidateQueries({ queryKey, exact: true });
    }
    return true;
  }
}
