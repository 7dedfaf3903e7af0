import assert from "node:assert/strict";
import { describe, it } from "node:test";

import type { Worker } from "../src/index.js";
import { JobsAhead } from "../src/jobs_ahead.js";
import type { Run } from "../src/run.js";
import type { FakeServer } from "./fake_server.js";
import { aServer, aWorker, promise } from "./worker_harness.js";

interface Gated {
  server: FakeServer;
  worker: Worker;
  begun: string[];
  open: () => void;
  started: (count: number) => Promise<void>;
}

/** A worker with room for one handler, which waits until `open`. */
async function gated(): Promise<Gated> {
  const server = await aServer();
  const gate = promise();
  const begun: string[] = [];
  let onBegun = (): void => {};
  const worker = aWorker(server, { maxInFlight: 1 }).handle("wait", async (ctx) => {
    begun.push(ctx.jobId);
    onBegun();
    await gate.kept;
  });
  await worker.start();
  const started = async (count: number): Promise<void> => {
    while (begun.length < count) await new Promise<void>((resume) => (onBegun = resume));
  };
  return { server, worker, begun, open: () => gate.keep(), started };
}

/** One that has measured as many handlers of these lanes that ended at once. */
async function measured(...lanes: string[]): Promise<JobsAhead> {
  const ahead = new JobsAhead(() => 100, () => {}, () => {});
  for (const lane of lanes) {
    for (let n = 0; n < 200; n += 1) {
      const run = { assignment: { lane } } as Run;
      ahead.began(run);
      ahead.ended(run);
    }
  }
  await new Promise((resume) => setImmediate(resume));
  return ahead;
}

describe("Jobs sent ahead of room", () => {
  it("are allowed in no more lanes than a call names", async () => {
    const lanes = Array.from({ length: 120 }, (_, n) => `lane-${n}`);
    assert.equal(Object.keys((await measured(...lanes)).allowed(0)).length, 100);
  });

  it("are never more than a server may send, with results under way", async () => {
    const { quick = 0 } = (await measured("quick")).allowed(1_000_000);
    assert.ok(quick >= 1 && quick <= 2000);
  });

  it("start in order as there is room", async () => {
    const { server, begun, open, started } = await gated();
    const first = server.assign("wait");
    await started(1);
    const rest = [1, 2, 3].map(() => server.assign("wait", { isAhead: true }));
    server.beat();
    await server.beats.first((claims) => claims.length === 4);
    assert.deepEqual(begun, [first.jobId]);
    open();
    await server.results.first(({ claim }) => claim?.jobId === first.jobId);
    const results = await server.results.count(4);
    // On a busy machine some may have waited too long, and went back.
    const ended = results.filter(({ finish }) => finish).map(({ claim }) => claim?.jobId);
    assert.deepEqual(begun, ended);
    const order = [first, ...rest].map(({ jobId }) => jobId);
    assert.deepEqual(begun, order.filter((one) => begun.includes(one)));
  });

  it("go back after a pause of the process, before any is started", async () => {
    const begun: Run[] = [];
    const returned: Run[] = [];
    const ahead = new JobsAhead(
      () => 1,
      (run) => begun.push(run),
      (run) => {
        ahead.drop(run);
        returned.push(run);
      },
    );
    const [running, waiting] = [0, 1].map(() => ({ assignment: { lane: "a" } }) as Run) as [Run, Run];
    ahead.began(running);
    ahead.put(waiting);
    await new Promise((resume) => setImmediate(resume));
    // As if the process was stopped, or a handler held the event loop.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    ahead.ended(running);
    await Promise.resolve();
    assert.deepEqual([begun, returned], [[], [waiting]]);
  });

  it("go back uncharged if they would wait for long", async () => {
    const { server, begun, open, started } = await gated();
    const first = server.assign("wait");
    await started(1);
    const waiting = server.assign("wait", { isAhead: true });
    const result = await server.results.first();
    assert.deepEqual(result.claim, waiting);
    assert.ok(result.release);
    assert.equal(result.ranMs, 0);
    open();
    await server.results.first(({ claim }) => claim?.jobId === first.jobId);
    assert.deepEqual(begun, [first.jobId]);
  });

  it("go back at once when the worker stops", async () => {
    const { server, worker, begun, open, started } = await gated();
    server.assign("wait");
    await started(1);
    const waiting = server.assign("wait", { isAhead: true });
    server.beat();
    await server.beats.first((claims) => claims.length === 2);
    const stopped = worker.stop();
    assert.ok((await server.results.first(({ claim }) => claim?.jobId === waiting.jobId)).release);
    open();
    await stopped;
    assert.equal(begun.length, 1);
  });

  it("are never called once they are cancelled or fenced", async () => {
    for (const answer of ["ANSWER_CANCEL_REQUESTED", "ANSWER_FENCED"] as const) {
      const { server, begun, open, started } = await gated();
      const first = server.assign("wait");
      await started(1);
      const gone = server.assign("wait", { isAhead: true });
      server.onBeat = ({ jobId }) => (jobId === gone.jobId ? answer : "ANSWER_ACCEPTED");
      server.beat();
      await server.beats.first((claims) => claims.length === 2);
      if (answer === "ANSWER_FENCED") {
        // The attempt is over: later heartbeats do not name it.
        server.beat();
        await server.beats.first((claims) => claims.length === 1);
      } else {
        const result = await server.results.first(({ claim }) => claim?.jobId === gone.jobId);
        assert.ok(result.cancel ?? result.release);
      }
      open();
      await server.results.first(({ claim }) => claim?.jobId === first.jobId);
      assert.deepEqual(begun, [first.jobId]);
    }
  });

  it("are allowed while handlers end at once, unless the room is set", async () => {
    for (const options of [{}, { maxInFlight: 100 }]) {
      const server = await aServer();
      await aWorker(server, options).handle("quick", () => 1).start();
      const isAllowed = (): boolean => server.allowed.all.some((one) => (one["default"] ?? 0) > 0);
      for (let sent = 0; sent < 2000 && !isAllowed(); ) {
        for (let n = 0; n < 50; n += 1) server.assign("quick");
        sent += 50;
        await server.results.count(sent);
      }
      assert.equal(isAllowed(), options.maxInFlight === undefined);
    }
  });

  it("are not allowed while handlers wait", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("slow", () => new Promise((resolve) => setTimeout(resolve, 1)))
      .start();
    for (let sent = 50; sent <= 600; sent += 50) {
      for (let n = 0; n < 50; n += 1) server.assign("slow");
      await server.results.count(sent);
    }
    assert.ok(server.allowed.all.every((one) => Object.keys(one).length === 0));
  });
});
