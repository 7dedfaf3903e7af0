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
      return { items: [{ id: "a", status: "running" }] };
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
