/** A list that is fetched page by page: iterate over all, or fetch one page. */

/** The size of a page, and the `next_cursor` of the page before. */
export interface PagePosition {
  limit?: number | undefined;
  cursor?: string | null | undefined;
}

export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

const LARGEST_PAGE = 200;

export abstract class PagedList<Item, Found extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  /** Returns at most `limit` items (50 by default) and the cursor of the next page. */
  abstract page(position?: PagePosition): Promise<Found>;

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let cursor: string | null | undefined;
    do {
      const page = await this.page({ limit: LARGEST_PAGE, cursor });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor !== null);
  }
}
