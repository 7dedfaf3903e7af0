import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { status } from "@grpc/grpc-js";

import { InvalidInput } from "../src/index.js";
import { Heard, TOKEN, refusal } from "./fake_server.js";
import { aServer, aWorker, aborted, promise } from "./worker_harness.js";

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
    const handshake = await server.handshakes.first();
    assert.deepEqual(
      [handshake.name, handshake.maxInFlight, handshake.code, handshake.holds, handshake.pid],
      ["me", 7, "v1", [], process.pid],
    );
    assert.deepEqual(
      handshake.jobTypes.map((one) => [one.name, one.declaration]),
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

  it("is told when its token does not cover a job type, not at each stream", async () => {
    const server = await aServer();
    server.uncovered = ["dear", "secret"];
    const warned: string[] = [];
    const logger = { info: () => {}, warn: (line: string) => warned.push(line), error: () => {} };
    await aWorker(server, { logger })
      .handle("work", () => {})
      .start();
    const told = async (): Promise<number> => {
      const streams = server.handshakes.all.length;
      server.cut();
      await server.handshakes.count(streams + 1);
      server.assign("work");
      await server.results.count(streams);
      return warned.filter((line) => line.includes("cover")).length;
    };
    assert.equal(await told(), 1);
    server.uncovered = [];
    assert.equal(await told(), 1);
    server.uncovered = ["dear", "secret"];
    assert.equal(await told(), 2);
    assert.ok(warned.includes("the token does not cover dear, secret: this worker gets no such jobs"));
  });

  it("warns once a day of a token that expires", async () => {
    const server = await aServer();
    const warnings = new Heard<string>();
    const logger = { info: () => {}, warn: (line: string) => warnings.push(line), error: () => {} };
    await aWorker(server, { logger })
      .handle("work", () => {})
      .start();
    for (const hours of [72, 72, 47, 0.5]) server.sendExpiry(hours * 3_600_000);
    const cure = "create another with `laneway tokens create`";
    assert.deepEqual(await warnings.count(3), [
      `the token expires in 3 days: ${cure}`,
      `the token expires in 1 day: ${cure}`,
      `the token expires within the hour: ${cure}`,
    ]);
  });

  it("learns which schemas are refused, and what else is not in force", async () => {
    const server = await aServer();
    server.ignored = [
      { jobType: "odd", fields: ["arguments"], argumentsRefused: "is too large" },
      { jobType: "set", fields: ["arguments", "lane"] },
    ];
    const warned: string[] = [];
    const logger = { info: () => {}, warn: (line: string) => warned.push(line), error: () => {} };
    await aWorker(server, { logger })
      .handle("work", () => {})
      .start();
    assert.match(warned.join("\n"), /refuses the argument schema of odd \(is too large\)/);
    assert.match(warned.join("\n"), /are not in force: set: arguments, lane \(/);
    assert.doesNotMatch(warned.join("\n"), /odd: arguments/);
  });

  it("says that it goes on trying where nobody answers", async () => {
    const server = await aServer();
    server.stop();
    const warnings = new Heard<string>();
    const logger = { info: () => {}, warn: (text: string) => warnings.push(text), error: () => {} };
    const worker = aWorker(server, { logger }).handle("work", () => {});
    const start = worker.start();
    const warning = await warnings.first();
    assert.ok(warning.startsWith(`stream: ${server.address}: No connection established.`), warning);
    assert.match(warning, /ECONNREFUSED [\d.:]+ \(check the server option; trying again\)$/);
    await worker.stop();
    await start;
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
    assert.equal((await server.handshakes.first()).jobTypes[0]?.hasAnalysis, true);
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
    assert.deepEqual([ofBad.fail?.error?.type, ofBad.fail?.isFinal], ["InvalidResult", true]);
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
    const [, handshake] = await server.handshakes.count(2);
    assert.deepEqual(handshake?.holds, [claim]);
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
    assert.deepEqual((await second.handshakes.first()).holds, [claim]);
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

describe("A stop", () => {
  it("ends only after the server has taken back jobs still being sent", async () => {
    const server = await aServer();
    const worker = aWorker(server).handle("work", () => {});
    await worker.start();
    await worker.stop();
    const { maxInFlight, holds } = server.handshakes.all.at(-1)!;
    assert.deepEqual([server.handshakes.all.length, maxInFlight, holds], [2, 0, []]);
  });

  it("says so, lets jobs finish, and releases those that take longer than the grace", async () => {
    const server = await aServer();
    const [gate, began] = [promise(), promise()];
    const said: string[] = [];
    const logger = { info: (line: string) => said.push(line), warn: () => {}, error: () => {} };
    const worker = aWorker(server, { logger })
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
    const [, draining] = await server.handshakes.count(2);
    assert.deepEqual([draining?.maxInFlight, draining?.holds], [0, [quick, slow]]);
    gate.keep();
    assert.deepEqual((await server.results.first()).claim, quick);
    void worker.stop({ graceMs: 0 });
    await stopped;
    const ofSlow = server.results.all.find((one) => one.claim?.jobId === slow.jobId);
    assert.deepEqual(ofSlow?.release, {});
    assert.equal(said[1], "stopping: 2 jobs have 60 s to end; a second signal does not wait");
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
    const [, second] = await server.handshakes.count(2);
    assert.equal(second?.maxInFlight, 2);
    gate.keep();
    const [, , third] = await server.handshakes.count(3);
    assert.equal(third?.maxInFlight, 3);
    assert.equal(server.results.all.length, 1);
  });
});
