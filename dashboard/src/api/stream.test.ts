import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ServerEvent } from "./events";
import { LiveStream } from "./stream";

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A stream whose server gives these responses, one for each attempt. */
function streamOf(responses: (() => Response)[]) {
  const lastIds: (string | null)[] = [];
  const events: ServerEvent[] = [];
  const missing = { count: 0 };
  const stream = new LiveStream({
    open: async (_topics, lastId) => {
      lastIds.push(lastId);
      const next = responses.shift();
      if (next === undefined) throw new Error("unreachable");
      return next();
    },
    onEvent: (event) => events.push(event),
    onMissing: () => {
      missing.count += 1;
    },
    onChange: () => {},
  });
  return { stream, lastIds, events, missing };
}

const ending = (text: string) => () => new Response(text);
const refusing = (status: number, retryAfter: string) => () =>
  new Response("", { status, headers: { "Retry-After": retryAfter } });

it("continues after the last event", async () => {
  const { stream, lastIds, events } = streamOf([ending("id: 7\nevent: a\ndata: {}\n\n")]);
  stream.follow(["jobs"]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(events.map(({ name }) => name)).toEqual(["a"]);
  expect(lastIds.slice(0, 2)).toEqual([null, "7"]);
  expect(stream.status).toBe("reconnecting");
  stream.close();
});

it("starts with the current state when it follows other topics", async () => {
  const { stream, lastIds } = streamOf([ending("id: 7\ndata: {}\n\n")]);
  stream.follow(["jobs"]);
  await vi.advanceTimersByTimeAsync(0);
  stream.follow(["lanes"]);
  await vi.advanceTimersByTimeAsync(0);
  expect(lastIds).toEqual([null, null]);
  stream.close();
});

it("tries less and less often while the server is away", async () => {
  const { stream, lastIds } = streamOf([]);
  stream.follow(["jobs"]);
  await vi.advanceTimersByTimeAsync(3600_000);
  expect(lastIds.length).toBeLessThan(400);
  expect(lastIds.length).toBeGreaterThan(200);
  stream.close();
});

it("waits as long as a busy server asks", async () => {
  const { stream, lastIds } = streamOf([refusing(429, "30")]);
  stream.follow(["jobs"]);
  await vi.advanceTimersByTimeAsync(29_000);
  expect(lastIds.length).toBe(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(lastIds.length).toBe(2);
  stream.close();
});

it("is silent while it is paused, and after it was closed", async () => {
  const { stream, lastIds } = streamOf([]);
  stream.follow(["jobs"]);
  stream.pause("hidden", true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lastIds.length).toBe(1);
  expect(stream.status).toBe("paused");
  stream.close();
  expect(stream.status).toBe("off");
});

it("says that a topic is missing", async () => {
  const { stream, missing } = streamOf([
    () => new Response(null, { status: 503 }),
    () => new Response(null, { status: 404 }),
  ]);
  stream.follow(["job:1"]);
  await vi.advanceTimersByTimeAsync(500);
  expect(missing.count).toBe(0);
  await vi.advanceTimersByTimeAsync(2000);
  expect(missing.count).toBe(1);
  stream.close();
});
