import { InfiniteQueryObserver, QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LiveUpdates } from "./live_updates";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const changed = { id: "1", name: "job.completed", data: { id: "a", status: "completed" } };

/** Read a route that takes this long, while somebody looks at it. */
function watch(cache: QueryClient, queryKey: unknown[], tookMs: number) {
  let [begun, ended] = [0, 0];
  const observer = new QueryObserver(cache, {
    queryKey,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      begun += 1;
      await new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, tookMs);
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          reject(signal.reason);
        });
      });
      ended += 1;
      const page = { items: [{ id: "a", status: "running" }] };
      return queryKey[0] === "steady" ? { pages: [page] } : page;
    },
  });
  observer.subscribe(() => {});
  return { begun: () => begun, ended: () => ended };
}

it("lets every read of a slow server end on a busy queue", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const reads = watch(cache, ["/jobs"], 4000);
  await vi.advanceTimersByTimeAsync(4000);
  for (let at = 0; at < 200; at += 1) {
    updates.apply(changed);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(reads.ended()).toBeGreaterThanOrEqual(4);
  expect(reads.begun() - reads.ended()).toBeLessThanOrEqual(1);
});

it("reads again after a read that may have missed a change", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const reads = watch(cache, ["/jobs"], 2000);
  await vi.advanceTimersByTimeAsync(1000);
  updates.apply(changed);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads.ended()).toBe(2);
});

it("reads a steady list again whose read may have missed a change", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const reads = watch(cache, ["steady", "/jobs"], 2000);
  await vi.advanceTimersByTimeAsync(1000);
  updates.apply(changed);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads.ended()).toBe(2);
  updates.apply(changed);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads.ended()).toBe(2);
});

it("reads a list once for many events", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const reads = watch(cache, ["/jobs"], 1);
  await vi.advanceTimersByTimeAsync(10);
  for (let at = 0; at < 1000; at += 1) updates.apply(changed);
  await vi.advanceTimersByTimeAsync(5000);
  expect(reads.begun()).toBe(2);
});

it("puts the new state of a job into a list at once", async () => {
  const cache = new QueryClient();
  cache.setQueryData(["/jobs"], { items: [{ id: "a", status: "running" }, { id: "b" }] });
  new LiveUpdates(cache).apply(changed);
  expect(cache.getQueryData(["/jobs"])).toEqual({
    items: [{ id: "a", status: "completed" }, { id: "b" }],
  });
});

it("reads the details of a job again only when that job has changed", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const key = (job_id: string) => ["/jobs/{job_id}", { path: { job_id } }];
  const [mine, other] = [watch(cache, key("a"), 1), watch(cache, key("b"), 1)];
  await vi.advanceTimersByTimeAsync(10);
  updates.apply(changed);
  await vi.advanceTimersByTimeAsync(5000);
  expect([mine.begun(), other.begun()]).toEqual([2, 1]);
  updates.apply({ id: "2", name: "jobs.changed", data: {} });
  await vi.advanceTimersByTimeAsync(5000);
  expect([mine.begun(), other.begun()]).toEqual([3, 2]);
});

it("reads only the first of several pages again", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const asked: (number | null)[] = [];
  let newest = 10;
  const observer = new InfiniteQueryObserver(cache, {
    queryKey: ["pages", "/admin/audit"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ pageParam }) => {
      asked.push(pageParam);
      const from = pageParam ?? newest;
      return { items: [{ id: from }, { id: from - 1 }], next_cursor: from - 2 };
    },
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.next_cursor,
  });
  const ids = () => observer.getCurrentResult().data?.pages.flatMap(({ items }) => items);
  observer.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(10);
  await observer.fetchNextPage();
  await observer.fetchNextPage();
  expect(asked).toEqual([null, 8, 6]);
  newest = 11;
  updates.apply({ id: "2", name: "lane.changed", data: {} });
  await vi.advanceTimersByTimeAsync(3000);
  expect(asked).toEqual([null, 8, 6, null]);
  expect(ids()?.map(({ id }) => id)).toEqual([11, 10, 9, 8, 7, 6, 5]);
});

it("reads all pages again after a change of many jobs", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const asked: (number | null)[] = [];
  const observer = new InfiniteQueryObserver(cache, {
    queryKey: ["pages", "/jobs"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ pageParam }) => {
      asked.push(pageParam);
      return { items: [{ id: pageParam }], next_cursor: (pageParam ?? 0) + 1 };
    },
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.next_cursor,
  });
  observer.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(10);
  await observer.fetchNextPage();
  updates.apply({ id: "2", name: "jobs.changed", data: {} });
  await vi.advanceTimersByTimeAsync(3000);
  expect(asked).toEqual([null, 1, null, 1]);
});

/** Read a list of ids page by page, two on each, while somebody looks at it. */
function watchPages(cache: QueryClient, key: unknown[], state: { ids: number[]; tookMs: number }) {
  const asked: (number | null)[] = [];
  let [running, most] = [0, 0];
  const observer = new InfiniteQueryObserver(cache, {
    queryKey: ["pages", ...key],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ pageParam }) => {
      asked.push(pageParam);
      running += 1;
      most = Math.max(most, running);
      const rest =
        pageParam === null ? [...state.ids] : state.ids.slice(state.ids.indexOf(pageParam) + 1);
      await new Promise((resolve) => setTimeout(resolve, state.tookMs));
      running -= 1;
      const items = rest.slice(0, 2).map((id) => ({ id: String(id), status: "awaiting_approval" }));
      return { items, next_cursor: rest.length > 2 ? (rest[1] ?? null) : null };
    },
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.next_cursor,
  });
  observer.subscribe(() => {});
  const shown = () =>
    observer
      .getCurrentResult()
      .data?.pages.flatMap(({ items }) => items.map(({ id }) => Number(id)));
  return { asked, observer, shown, most: () => most };
}
const INBOX = ["/jobs", { query: { status: "awaiting_approval", oldest_first: true } }];
const lane = { id: "2", name: "lane.changed", data: {} };
const job = (id: number, status: string) => ({
  id: "2",
  name: "job.changed",
  data: { id: String(id), status },
});

it("shows a new request at the end of the inbox", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const state = { ids: [1, 2, 4], tookMs: 0 };
  const list = watchPages(cache, INBOX, state);
  await vi.advanceTimersByTimeAsync(10);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(10);
  expect(list.shown()).toEqual([1, 2, 4]);
  state.ids = [1, 2, 3, 4, 5];
  updates.apply(job(5, "awaiting_approval"));
  await vi.advanceTimersByTimeAsync(3000);
  // The analysis of an earlier job may end later.
  expect(list.shown()).toEqual([1, 2, 3, 4]);
  expect(list.observer.getCurrentResult().hasNextPage).toBe(true);
});

it("does not read the inbox for jobs that it does not show", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const list = watchPages(cache, INBOX, { ids: [1, 2, 3], tookMs: 0 });
  await vi.advanceTimersByTimeAsync(10);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(10);
  updates.apply(job(9, "completed"));
  await vi.advanceTimersByTimeAsync(3000);
  expect(list.asked).toEqual([null, 2]);
  updates.apply(job(3, "approved"));
  await vi.advanceTimersByTimeAsync(3000);
  expect(list.asked).toEqual([null, 2, null, 2]);
});

it("reads one page of the inbox per pause at most, however many are loaded", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const list = watchPages(cache, INBOX, {
    ids: Array.from({ length: 20 }, (_, n) => n + 1),
    tookMs: 0,
  });
  await vi.advanceTimersByTimeAsync(10);
  for (let page = 2; page <= 10; page += 1) {
    void list.observer.fetchNextPage();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(list.asked).toHaveLength(10);
  for (let second = 0; second < 60; second += 1) {
    updates.apply(second % 2 ? job(99, "awaiting_approval") : { ...lane, name: "jobs.changed" });
    await vi.advanceTimersByTimeAsync(1000);
  }
  // One read of all ten at once, then one in 15 s.
  expect(list.asked.length - 10).toBeGreaterThanOrEqual(40);
  expect(list.asked.length - 10).toBeLessThanOrEqual(50);
});

it("reads the inbox again if a job was decided during a read", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const state = { ids: [1, 2], tookMs: 1000 };
  const list = watchPages(cache, INBOX, state);
  await vi.advanceTimersByTimeAsync(10);
  state.ids = [1];
  updates.apply(job(2, "approved"));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(list.shown()).toEqual([1]);
});

it("has one read of a first page at a time, and one more after it", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const state = { ids: [9, 8, 7, 6, 5, 4], tookMs: 0 };
  const list = watchPages(cache, ["/admin/audit"], state);
  await vi.advanceTimersByTimeAsync(10);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(10);
  state.tookMs = 20_000;
  for (let at = 0; at < 10; at += 1) {
    updates.apply(lane);
    await vi.advanceTimersByTimeAsync(1000);
  }
  state.ids = [10, ...state.ids];
  updates.apply(lane);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(list.most()).toBe(1);
  expect(list.asked).toEqual([null, 8, null, null]);
  expect(list.shown()?.slice(0, 3)).toEqual([10, 9, 8]);
});

it("drops a first page that arrives after a newer read", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const state = { ids: [9, 8, 7, 6, 5, 4], tookMs: 0 };
  const list = watchPages(cache, ["/admin/audit"], state);
  await vi.advanceTimersByTimeAsync(10);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(10);
  state.tookMs = 10_000;
  updates.apply(lane);
  await vi.advanceTimersByTimeAsync(3000);
  state.ids = [10, ...state.ids];
  state.tookMs = 0;
  void cache.invalidateQueries();
  await vi.advanceTimersByTimeAsync(100);
  expect(list.shown()).toEqual([10, 9, 8, 7]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(list.shown()).toEqual([10, 9, 8, 7]);
});

it("reads a first page again that arrives while more are loaded", async () => {
  const cache = new QueryClient();
  const updates = new LiveUpdates(cache);
  const state = { ids: [9, 8, 7, 6, 5, 4], tookMs: 0 };
  const list = watchPages(cache, ["/admin/audit"], state);
  await vi.advanceTimersByTimeAsync(10);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(10);
  state.ids = [10, ...state.ids];
  state.tookMs = 1000;
  updates.apply(lane);
  await vi.advanceTimersByTimeAsync(500);
  void list.observer.fetchNextPage();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(list.shown()).toEqual([10, 9, 8, 7, 6, 5, 4]);
});

it("repeats reads that failed while the server was away", async () => {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const updates = new LiveUpdates(cache);
  const reads = watch(cache, ["/jobs"], 1);
  let tries = 0;
  const failing = new QueryObserver(cache, {
    queryKey: ["/admin/limits"],
    queryFn: async () => {
      tries += 1;
      if (tries === 1) throw new Error("unreachable");
      return {};
    },
  });
  failing.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(10);
  updates.apply({ id: "1", name: "stream.opened", data: { resumed: true } });
  await vi.advanceTimersByTimeAsync(10);
  expect(failing.getCurrentResult().status).toBe("success");
  expect(reads.begun()).toBe(1);
});
