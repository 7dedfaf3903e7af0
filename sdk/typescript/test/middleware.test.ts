import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, it } from "node:test";

import { Cancel, InvalidInput, Retry, Snooze, type Worker } from "../src/index.js";
import type { FakeServer } from "./fake_server.js";
import { aServer, aWorker, aborted, promise } from "./worker_harness.js";

/** Starts a worker, sends it one job and returns the result. */
async function resultOf(server: FakeServer, worker: Worker, jobType = "work") {
  await worker.start();
  server.assign(jobType);
  return server.results.first();
}

describe("Middleware", () => {
  it("runs around the handler, the first registered outermost", async () => {
    const server = await aServer();
    const order: string[] = [];
    const worker = aWorker(server)
      .use(async (ctx, next) => {
        order.push(`outer ${ctx.jobType}`);
        const result = await next();
        order.push("outer after");
        return { outer: result };
      })
      .use(async (_, next) => {
        order.push("inner");
        const result = await next();
        order.push("inner after");
        return { inner: result };
      })
      .handle("work", () => {
        order.push("handler");
        return 1;
      });
    const { finish } = await resultOf(server, worker);
    assert.equal(finish?.result, '{"outer":{"inner":1}}');
    assert.deepEqual(order, ["outer work", "inner", "handler", "inner after", "outer after"]);
  });

  it("gives the handler its async context", async () => {
    const server = await aServer();
    const user = new AsyncLocalStorage<string>();
    const worker = aWorker(server)
      .use((_, next) => user.run("ann", next))
      .handle("work", async () => user.getStore());
    assert.equal((await resultOf(server, worker)).finish?.result, '"ann"');
  });

  it("sees the handler's error, and may answer instead or throw another", async () => {
    const server = await aServer();
    const seen: string[] = [];
    const worker = aWorker(server)
      .use(async (ctx, next) => {
        try {
          return await next();
        } catch (error) {
          seen.push((error as Error).message);
          if (ctx.jobType === "kind") return "handled";
          throw new Error("translated");
        }
      })
      .handle("kind", () => {
        throw new Error("one");
      })
      .handle("strict", () => {
        throw new Error("two");
      });
    assert.equal((await resultOf(server, worker, "kind")).finish?.result, '"handled"');
    server.assign("strict");
    const { fail } = await server.results.first((one) => one.fail != null);
    assert.equal(fail?.error?.message, "translated");
    assert.deepEqual(seen, ["one", "two"]);
  });

  for (const [signal, outcome] of [
    [new Snooze(60_000), "snooze"],
    [new Cancel("enough"), "cancel"],
    [new Retry("busy", { afterMs: 5000 }), "fail"],
  ] as const) {
    it(`cannot swallow ${signal.name}`, async () => {
      const server = await aServer();
      const worker = aWorker(server)
        .use((_, next) => next().catch(() => "swallowed"))
        .handle("work", () => {
          throw signal;
        });
      const result = await resultOf(server, worker);
      assert.equal(result.finish ?? null, null);
      assert.ok(result[outcome]);
    });
  }

  it("cannot swallow a stop of the handler", async () => {
    const server = await aServer();
    const started = promise();
    const worker = aWorker(server)
      .use((_, next) => next().catch(() => "swallowed"))
      .handle("work", async (ctx) => {
        started.keep();
        await aborted(ctx.signal);
        throw new DOMException("stopped", "AbortError");
      });
    await worker.start();
    server.assign("work");
    await started.kept;
    await worker.stop({ graceMs: 0 });
    const { finish, release } = await server.results.first();
    assert.deepEqual([finish ?? null, release], [null, {}]);
  });

  it("may skip the handler, but not run it twice", async () => {
    const server = await aServer();
    let runs = 0;
    const worker = aWorker(server)
      .use(async (ctx, next) => {
        if (ctx.jobType === "skipped") return "skipped";
        await next();
        return next();
      })
      .handle("skipped", () => (runs += 1))
      .handle("twice", () => (runs += 1));
    assert.equal((await resultOf(server, worker, "skipped")).finish?.result, '"skipped"');
    server.assign("twice");
    const { fail } = await server.results.first((one) => one.fail != null);
    assert.match(fail?.error?.message ?? "", /next was called twice/);
    assert.equal(runs, 1);
  });

  it("does not run around analyses", async () => {
    const server = await aServer();
    let runs = 0;
    const worker = aWorker(server)
      .use((_, next) => {
        runs += 1;
        return next();
      })
      .handle("work", { analyze: () => ({ plan: "p" }) }, () => {});
    await worker.start();
    server.assign("work", { isAnalysis: true });
    const { finish } = await server.results.first();
    assert.match(finish?.result ?? "", /"plan":"p"/);
    assert.equal(runs, 0);
  });

  it("must be a function, registered before the start", async () => {
    const server = await aServer();
    const worker = aWorker(server).handle("work", () => {});
    assert.throws(() => worker.use("no" as never), InvalidInput);
    await worker.start();
    assert.throws(() => worker.use((_, next) => next()), InvalidInput);
  });
});
