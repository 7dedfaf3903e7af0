import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { StaleAttempt } from "../src/index.js";
import { aServer, aWorker, promise } from "./worker_harness.js";

describe("A context", () => {
  it("stores checkpoints before it goes on, progress and lines before the end", async () => {
    const server = await aServer();
    const stored = promise<number>();
    await aWorker(server)
      .handle("work", async (ctx) => {
        assert.deepEqual(ctx.checkpoint, { at: 1 });
        await ctx.save({ at: 2 });
        stored.keep(server.updates.all.length);
        ctx.progress(3, 4, "three é");
        ctx.log.info("first");
        ctx.log.warning("second");
      })
      .start();
    server.assign("work", { checkpoint: '{"at": 1}' });
    assert.equal(await stored.kept, 1);
    await server.results.first();
    const [saved, rest] = server.updates.all;
    assert.equal(saved?.checkpoint, '{"at":2}');
    assert.deepEqual([rest?.done, rest?.total, rest?.message], [3, 4, "three é"]);
    assert.deepEqual(
      rest?.lines.map((line) => [line.number, line.level, line.message]),
      [
        [1, "info", "first"],
        [2, "warning", "second"],
      ],
    );
  });

  it("runs a step once per job, and reads its result as later attempts will", async () => {
    const server = await aServer();
    server.onStep = (step) => ({ ...step, result: '{"kept":"first"}' });
    await aWorker(server)
      .handle("work", async (ctx) => [
        await ctx.step("old", () => assert.fail("ran before")),
        await ctx.step("new", async () => ({ kept: "second" })),
        await ctx.step("new", () => 1).catch((error: Error) => error.message),
      ])
      .start();
    server.assign("work", { attempt: 2, steps: [{ name: "old", result: "7" }] });
    const result = JSON.parse((await server.results.first()).finish?.result ?? "");
    assert.deepEqual(result.slice(0, 2), [7, { kept: "first" }]);
    assert.match(result[2], /^step "new": already ran/);
  });

  it("a call that nobody waits for does not end the process", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("hasty", (ctx) => {
        void ctx.step("forgotten", () => assert.fail("nobody hears this"));
        void ctx.limit([], () => {});
        void ctx.save(1n);
      })
      .start();
    server.assign("hasty");
    assert.equal((await server.results.first()).finish?.result, "null");
  });

  it("says how often the job is retried, its tags and its submitter", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("work", { maxRetries: 1 }, (ctx) => [
        ctx.maxRetries,
        ctx.isLastAttempt,
        ctx.tags,
        ctx.createdBy ?? null,
      ])
      .start();
    server.assign("work", { retries: 2, maxRetries: 2, tags: ["a", "b"], createdBy: "ann" });
    assert.equal((await server.results.first()).finish?.result, '[2,true,["a","b"],"ann"]');
    // An older server sends none of them.
    const { jobId } = server.assign("work");
    const { finish } = await server.results.first((one) => one.claim?.jobId === jobId);
    assert.equal(finish?.result, "[1,false,[],null]");
  });

  it("a step or checkpoint that cannot be stored fails the job without a retry", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("step", (ctx) => ctx.step("one", () => 1n))
      .handle("save", (ctx) => ctx.save({ at: 1n }))
      .start();
    for (const jobType of ["step", "save"]) {
      const { jobId } = server.assign(jobType);
      const { fail } = await server.results.first((one) => one.claim?.jobId === jobId);
      assert.deepEqual([fail?.error?.type, fail?.isFinal], ["InvalidResult", true]);
    }
  });

  it("an empty report counts as progress and is sent", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("work", (ctx) => ctx.progress({}))
      .start();
    server.assign("work");
    await server.results.first();
    assert.equal(server.updates.all.length, 1);
  });

  it("a word that progress does not know fails the attempt", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("work", (ctx) => ctx.progress({ percent: 50 } as never))
      .start();
    server.assign("work");
    const { fail } = await server.results.first();
    assert.equal(fail?.error?.type, "InvalidInput");
    assert.match(fail?.error?.message ?? "", /^progress: "percent" is not an option; options are done, /);
  });

  it("refuses writes of an attempt that is fenced", async () => {
    const server = await aServer();
    server.onUpdate = () => "ANSWER_FENCED";
    const refused = promise<unknown>();
    await aWorker(server)
      .handle("work", async (ctx) => {
        await ctx.save(1).catch(refused.keep);
      })
      .start();
    server.assign("work");
    assert.ok((await refused.kept) instanceof StaleAttempt);
  });

  it("goes on behind the last item that was stored", async () => {
    const server = await aServer();
    const seen: string[] = [];
    await aWorker(server)
      .handle("work", async (ctx) => {
        for await (const item of ctx.track(["a", "b", "c"])) seen.push(item);
        return ctx.checkpoint;
      })
      .start();
    server.assign("work", { checkpoint: '{"own": 1, "_tracked": {"items": 1}}' });
    assert.equal((await server.results.first()).finish?.result, '{"own":1}');
    assert.deepEqual(seen, ["b", "c"]);
    const { checkpoint, done, total } = server.updates.all.at(-1) ?? {};
    assert.deepEqual([checkpoint, done, total], ['{"own":1,"_tracked":{"items":3}}', 3, 3]);
  });

  it("lets heartbeats through while it goes through items", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("busy", async (ctx) => {
        for await (const _ of ctx.track(Array(2 ** 32 - 1))) {
          if (server.beats.all.length > 0) return ctx.cancelled;
        }
        return "ran out";
      })
      .start();
    server.assign("busy", { leaseMs: 6000, leaseLeftMs: 4010 });
    assert.equal((await server.results.first()).finish?.result, "false");
  });

  it("holds limits for a call, once there is room, and gives them back", async () => {
    const server = await aServer();
    let full = 2;
    server.onAcquire = () => ({ answer: "ANSWER_ACCEPTED", isFull: full-- > 0, waitMs: 5 });
    await aWorker(server)
      .handle("work", (ctx) =>
        ctx.limit(["b", "a"], async () => {
          await ctx.limit("a", () => {});
          return server.released.all.length;
        }),
      )
      .start();
    server.assign("work");
    assert.equal((await server.results.first()).finish?.result, "1");
    const asked = server.acquired.all.map(({ wants, inside }) => ({ wants, inside }));
    assert.deepEqual(asked.slice(0, 3), Array(3).fill({ wants: { a: 1, b: 1 }, inside: {} }));
    assert.deepEqual(asked[3], { wants: { a: 2 }, inside: { a: 1 } });
    assert.deepEqual(
      server.released.all.map((one) => one.keeps),
      [{ a: 1 }, { a: 0, b: 0 }],
    );
  });
});

describe("A call that outlives the one it was started in", () => {
  it("is not inside of it any more", async () => {
    const server = await aServer();
    server.onAcquire = () => ({ answer: "ANSWER_ACCEPTED" });
    await aWorker(server)
      .handle("work", async (ctx) => {
        const ended = promise();
        const { later } = await ctx.limit("scarce", () => ({
          later: ended.kept.then(() => ctx.limit("scarce", () => "done")),
        }));
        ended.keep();
        return later;
      })
      .start();
    server.assign("work");
    assert.equal((await server.results.first()).finish?.result, '"done"');
    assert.deepEqual(
      server.acquired.all.map(({ inside }) => inside),
      [{}, {}],
    );
  });
});

describe("Whoever waits for a limit", () => {
  it("stops waiting when told to, and those behind have their turn", async () => {
    const server = await aServer();
    let isFull = true;
    server.onAcquire = () => ({ answer: "ANSWER_ACCEPTED", isFull });
    const claims: { jobId: string }[] = [];
    server.onBeat = ({ jobId }) =>
      jobId === claims[0]?.jobId ? "ANSWER_CANCEL_REQUESTED" : "ANSWER_ACCEPTED";
    await aWorker(server)
      .handle("work", (ctx) => ctx.limit("scarce", () => "done"))
      .start();
    claims.push(server.assign("work"), server.assign("work"));
    await server.acquired.first();
    server.beat();
    const first = await server.results.first();
    assert.equal(first.claim?.jobId, claims[0]?.jobId);
    assert.ok(first.cancel);
    isFull = false;
    const [, second] = await server.results.count(2);
    assert.equal(second?.finish?.result, '"done"');
  });
});
