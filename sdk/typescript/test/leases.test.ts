import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Stopped } from "../src/index.js";
import { aServer, aWorker, aborted, promise } from "./worker_harness.js";

describe("Leases", () => {
  it("are renewed together, before they are over", async () => {
    const server = await aServer();
    const gate = promise();
    await aWorker(server)
      .handle("wait", () => gate.kept)
      .start();
    const lease = { leaseMs: 1500, leaseLeftMs: 1010 };
    const claims = [server.assign("wait", lease), server.assign("wait", lease)];
    const beats = await server.beats.count(2);
    assert.deepEqual(
      new Set(beats.flat().map((one) => one.jobId)),
      new Set(claims.map((one) => one.jobId)),
    );
    gate.keep();
    await server.results.count(2);
  });

  it("a cancel is learnt with the heartbeat that a server asks for", async () => {
    const server = await aServer();
    server.onBeat = () => "ANSWER_CANCEL_REQUESTED";
    const began = promise();
    await aWorker(server)
      .handle("wait", async (ctx) => {
        began.keep();
        await aborted(ctx.signal);
        assert.ok(ctx.cancelled);
        ctx.signal.throwIfAborted();
      })
      .start();
    server.assign("wait");
    await began.kept;
    server.beat();
    assert.deepEqual((await server.results.first()).cancel, { reason: "", result: "" });
  });

  it("a fenced attempt is told to stop, and says nothing more", async () => {
    const server = await aServer();
    server.onBeat = () => "ANSWER_FENCED";
    const [began, reason, refused] = [promise(), promise<unknown>(), promise<unknown>()];
    await aWorker(server)
      .handle("wait", async (ctx) => {
        began.keep();
        await aborted(ctx.signal);
        reason.keep(ctx.signal.reason);
        await ctx.save({ at: 1 }).catch(refused.keep);
        return "too late";
      })
      .handle("work", () => {})
      .start();
    server.assign("wait");
    await began.kept;
    server.beat();
    assert.equal(((await reason.kept) as Stopped).reason, "fenced");
    assert.ok((await refused.kept) instanceof Stopped);
    const next = server.assign("work");
    assert.deepEqual((await server.results.first()).claim, next);
    assert.equal(server.updates.all.length, 0);
  });

  it("of jobs that came while a handler blocked are asked about first", async () => {
    const server = await aServer();
    const over = new Set<string>();
    server.onBeat = ({ jobId }) => (over.has(jobId) ? "ANSWER_FENCED" : "ANSWER_ACCEPTED");
    const began: string[] = [];
    await aWorker(server)
      .handle("block", () => {
        over.add(server.assign("work").jobId);
        began.push(server.assign("work").jobId);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1300);
      })
      .handle("work", (ctx) => assert.deepEqual([ctx.jobId], began))
      .start();
    server.assign("block");
    await server.results.count(2);
    assert.deepEqual(
      server.results.all.map((one) => one.outcome),
      ["finish", "finish"],
    );
  });

  it("of jobs that a server has been given back meanwhile begin nothing", async () => {
    const server = await aServer();
    const worker = aWorker(server);
    const stopped = promise<Promise<void>>();
    server.onBeat = () => {
      // The stream is opened anew, and what is asked about is not among what it holds.
      stopped.keep(worker.stop({ graceMs: 0 }));
      return "ANSWER_ACCEPTED";
    };
    let began = 0;
    await worker
      .handle("block", () => {
        server.assign("work");
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1300);
      })
      .handle("work", () => void (began += 1))
      .start();
    server.assign("block");
    await (await stopped.kept);
    assert.equal(began, 0);
  });

  it("are lost by our own clock when nobody answers", async () => {
    const server = await aServer();
    server.onBeat = () => "silence";
    const reason = promise<unknown>();
    await aWorker(server)
      .handle("wait", async (ctx) => {
        await aborted(ctx.signal);
        reason.keep(ctx.signal.reason);
      })
      .start();
    const claim = server.assign("wait", { leaseMs: 200, leaseLeftMs: 200 });
    assert.equal(((await reason.kept) as Stopped).reason, "fenced");
    // Given back as if it had never come it would not be charged; nor if one handshake got lost.
    for (const n of [1, 2]) {
      server.cut();
      const handshakes = await server.handshakes.count(n + 1);
      assert.deepEqual(handshakes[n]?.holds, [claim]);
    }
  });
});
