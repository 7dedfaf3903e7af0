import assert from "node:assert/strict";
import { after, describe, it } from "node:test";

import { status } from "@grpc/grpc-js";

import { InvalidInput, type Logger, StaleAttempt, Stopped, Worker } from "../src/index.js";
import type { WorkerOptions } from "../src/index.js";
import { FakeServer, TOKEN, refusal } from "./fake_server.js";

const quiet: Logger = { info: () => {}, warn: () => {}, error: () => {} };
const cleanups: (() => unknown)[] = [];

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function aServer(port = 0): Promise<FakeServer> {
  const server = await FakeServer.start(port);
  cleanups.push(() => server.stop());
  return server;
}

function aWorker(server: FakeServer | string[], options: Partial<WorkerOptions> = {}): Worker {
  const at = server instanceof FakeServer ? server.address : server;
  const worker = new Worker({ server: at, token: TOKEN, logger: quiet, ...options });
  cleanups.push(() => worker.stop({ graceMs: 0 }));
  return worker;
}

/** A promise, and how to keep it. */
function promise<T = void>(): { kept: Promise<T>; keep: (value: T) => void } {
  let keep: (value: T) => void = () => {};
  const kept = new Promise<T>((resolve) => (keep = resolve));
  return { kept, keep };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}

describe("A worker", () => {
  it("says what it serves, runs what it is sent and tells how it ended", async () => {
    const server = await aServer();
    const worker = aWorker(server, { name: "me", maxInFlight: 7, version: "v1" });
    worker.handle("sum", { lane: "maths" }, (ctx, { a, b }: { a: number; b: number }) => {
      assert.equal(ctx.payloadText, '{"a": 1, "b": 90071992547409931}');
      return { sum: a + b, attempt: ctx.attempt };
    });
    worker.handle("plain", () => {});
    await worker.start();
    const hello = await server.hellos.first();
    assert.deepEqual(
      [hello.name, hello.maxInFlight, hello.code, hello.holds, hello.pid],
      ["me", 7, "v1", [], process.pid],
    );
    assert.deepEqual(
      hello.jobTypes.map((one) => [one.name, one.declaration]),
      [
        ["sum", '{"lane":"maths"}'],
        ["plain", ""],
      ],
    );
    const claim = server.assign("sum", { payload: '{"a": 1, "b": 90071992547409931}', attempt: 3 });
    const result = await server.results.first();
    assert.deepEqual(result.claim, claim);
    assert.equal(result.finish?.result, '{"sum":90071992547409940,"attempt":3}');
  });

  it("lives on when a handler throws what cannot be read", async () => {
    const server = await aServer();
    const name = {
      get: () => {
        throw new Error("no");
      },
    };
    await aWorker(server)
      .handle("work", () => {
        throw Object.defineProperty(new Error("odd"), "name", name);
      })
      .start();
    server.assign("work");
    const { fail } = await server.results.first();
    assert.match(fail?.error?.message ?? "", /cannot be read/);
  });

  it("is refused at the start if its token is", async () => {
    const server = await aServer();
    const worker = aWorker(server, { token: "another" }).handle("work", () => {});
    await assert.rejects(worker.start(), { name: "ServerError", code: "UNAUTHENTICATED" });
  });

  it("asks for its token at each call", async () => {
    const server = await aServer();
    let asked = 0;
    const token = async (): Promise<string> => {
      asked += 1;
      return TOKEN;
    };
    await aWorker(server, { token })
      .handle("work", () => {})
      .start();
    server.assign("work");
    await server.results.first();
    assert.equal(asked, 2);
  });

  it("fails a job for good whose payload it cannot take", async () => {
    const server = await aServer();
    const parse = (payload: unknown): number => {
      if (typeof payload !== "number") throw new InvalidInput("payload", "must be a number");
      return payload;
    };
    await aWorker(server)
      .handle("double", { parse }, (_, n) => n * 2)
      .start();
    server.assign("double", { payload: '"two"' });
    const { fail } = await server.results.first();
    assert.deepEqual([fail?.error?.type, fail?.isFinal], ["InvalidInput", true]);
    server.assign("double", { payload: "2" });
    assert.equal((await server.results.first((one) => one.finish != null)).finish?.result, "4");
  });

  it("plans jobs where it is asked to", async () => {
    const server = await aServer();
    const analyze = (_: unknown, { n }: { n: number }) => ({ plan: "count", tokens: n });
    await aWorker(server)
      .handle("count", { analyze }, () => assert.fail("not asked for"))
      .start();
    assert.equal((await server.hellos.first()).jobTypes[0]?.hasAnalysis, true);
    server.assign("count", { payload: '{"n": 5}', isAnalysis: true });
    const { finish } = await server.results.first();
    assert.equal(finish?.result, '{"plan":"count","cost":{"tokens":5},"warnings":[]}');
  });

  it("ends a handler that takes too long", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("slow", async (ctx) => {
        await aborted(ctx.signal);
        ctx.progress(1);
      })
      .start();
    server.assign("slow", { timeoutMs: 20 });
    assert.equal((await server.results.first()).fail?.error?.type, "Timeout");
  });
});

describe("Results", () => {
  it("that end together go together", async () => {
    const server = await aServer();
    const gate = promise();
    await aWorker(server)
      .handle("wait", async () => gate.kept)
      .start();
    for (let i = 0; i < 20; i++) server.assign("wait");
    server.assign("missing");
    await server.results.first();
    gate.keep();
    await server.results.count(21);
    assert.ok(server.calls.all.length <= 3, `${server.calls.all.length} calls`);
  });

  it("are sent again until they are answered", async () => {
    const server = await aServer();
    let away = 3;
    server.onResults = () => {
      if (away-- > 0) throw refusal(status.UNAVAILABLE, "the database is away");
    };
    await aWorker(server)
      .handle("work", () => 1)
      .start();
    const claim = server.assign("work");
    assert.deepEqual((await server.results.first()).claim, claim);
  });

  it("about a job that somebody else writes about are said again", async () => {
    const server = await aServer();
    const answers = new Map<string, number>();
    const busy = (what: string): "ANSWER_UNSPECIFIED" | "ANSWER_ACCEPTED" => {
      const count = (answers.get(what) ?? 0) + 1;
      answers.set(what, count);
      return count === 1 ? "ANSWER_UNSPECIFIED" : "ANSWER_ACCEPTED";
    };
    server.onUpdate = () => busy("update");
    server.onResult = () => busy("result");
    server.onAcquire = () => ({ answer: busy("limit") });
    const worker = aWorker(server).handle("work", (ctx) =>
      ctx.limit("scarce", async () => {
        await ctx.save({ at: 1 });
        return ctx.step("one", () => 1);
      }),
    );
    await worker.start();
    server.assign("work");
    await server.results.count(2);
    await worker.stop();
    assert.deepEqual([...answers.values()], [2, 3, 2]);
    const [first, second] = server.updates.all;
    assert.deepEqual([first?.checkpoint, second?.checkpoint], ['{"at":1}', '{"at":1}']);
  });

  it("that a server refuses fail their own job only", async () => {
    const server = await aServer();
    server.onResults = (results) => {
      if (results.some((one) => one.finish?.result === '"poison"')) {
        throw refusal(status.INVALID_ARGUMENT, "results[0].finish.result: too large");
      }
    };
    const gate = promise();
    await aWorker(server)
      .handle("echo", async (_, value) => {
        await gate.kept;
        return value;
      })
      .start();
    const bad = server.assign("echo", { payload: '"poison"' });
    const good = server.assign("echo", { payload: '"fine"' });
    gate.keep();
    const ofBad = await server.results.first((one) => one.claim?.jobId === bad.jobId);
    assert.equal(ofBad.fail?.error?.type, "InvalidResult");
    const ofGood = await server.results.first((one) => one.claim?.jobId === good.jobId);
    assert.equal(ofGood.finish?.result, '"fine"');
  });
});

describe("A lost stream", () => {
  it("is opened anew, and says what is in hand", async () => {
    const server = await aServer();
    const gate = promise();
    const began = promise();
    await aWorker(server)
      .handle("wait", async () => {
        began.keep();
        await gate.kept;
      })
      .start();
    const claim = server.assign("wait");
    await began.kept;
    server.cut();
    const [, hello] = await server.hellos.count(2);
    assert.deepEqual(hello?.holds, [claim]);
    gate.keep();
    assert.deepEqual((await server.results.first()).claim, claim);
    server.assign("wait");
    await server.results.count(2);
  });

  it("leads to another server, where results go too", async () => {
    const [first, second] = [await aServer(), await aServer()];
    const gate = promise();
    const began = promise();
    await aWorker([first.address, second.address])
      .handle("wait", async () => {
        began.keep();
        await gate.kept;
      })
      .start();
    const claim = first.assign("wait");
    await began.kept;
    first.stop();
    assert.deepEqual((await second.hellos.first()).holds, [claim]);
    gate.keep();
    assert.deepEqual((await second.results.first()).claim, claim);
  });

  it("a server that is not there yet is waited for", async () => {
    const gone = await aServer();
    gone.stop();
    const worker = aWorker(gone).handle("work", () => {});
    const started = worker.start();
    const server = await aServer(gone.port);
    await started;
    server.assign("work");
    await server.results.first();
  });
});

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
    // Given back as if it had never come it would not be charged; nor if one hello got lost.
    for (const n of [1, 2]) {
      server.cut();
      const hellos = await server.hellos.count(n + 1);
      assert.deepEqual(hellos[n]?.holds, [claim]);
    }
  });
});

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
    assert.match(result[2], /^step "new": ran already/);
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

  it("a word that progress does not know fails the attempt", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("work", (ctx) => ctx.progress({ percent: 50 } as never))
      .start();
    server.assign("work");
    const { fail } = await server.results.first();
    assert.equal(fail?.error?.type, "TypeError");
    assert.match(fail?.error?.message ?? "", /^progress: "percent" is unknown; known are done, /);
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

describe("A stop", () => {
  it("lets jobs finish, and releases those that take longer than the grace", async () => {
    const server = await aServer();
    const [gate, began] = [promise(), promise()];
    const worker = aWorker(server)
      .handle("quick", async () => {
        await gate.kept;
        return 1;
      })
      .handle("slow", async (ctx) => {
        began.keep();
        await aborted(ctx.signal);
        ctx.check();
      });
    await worker.start();
    const quick = server.assign("quick");
    const slow = server.assign("slow");
    await began.kept;
    const stopped = worker.stop({ graceMs: 60_000 });
    const [, draining] = await server.hellos.count(2);
    assert.deepEqual([draining?.maxInFlight, draining?.holds], [0, [quick, slow]]);
    gate.keep();
    assert.deepEqual((await server.results.first()).claim, quick);
    void worker.stop({ graceMs: 0 });
    await stopped;
    const ofSlow = server.results.all.find((one) => one.claim?.jobId === slow.jobId);
    assert.deepEqual(ofSlow?.release, {});
  });

  it("a handler that does not stop is left behind, and takes room until it returns", async () => {
    const server = await aServer();
    const [gate, began] = [promise(), promise()];
    server.onBeat = () => "ANSWER_CANCEL_REQUESTED";
    await aWorker(server, { maxInFlight: 3, cancelGraceMs: 10 })
      .handle("deaf", async () => {
        began.keep();
        await gate.kept;
      })
      .start();
    server.assign("deaf");
    await began.kept;
    server.beat();
    assert.ok((await server.results.first()).cancel);
    const [, second] = await server.hellos.count(2);
    assert.equal(second?.maxInFlight, 2);
    gate.keep();
    const [, , third] = await server.hellos.count(3);
    assert.equal(third?.maxInFlight, 3);
    assert.equal(server.results.all.length, 1);
  });
});
