import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { status } from "@grpc/grpc-js";

import type { Context } from "../src/index.js";
import { type FakeServer, refusal } from "./fake_server.js";
import { aServer, aWorker, aborted, promise } from "./worker_harness.js";

const done = { answer: "ANSWER_ACCEPTED", state: "WAIT_STATE_DONE" } as const;

/** The result of a job of this handler. */
async function resultOf(
  server: FakeServer,
  handler: (ctx: Context) => unknown,
  given: Parameters<FakeServer["assign"]>[1] = {},
) {
  await aWorker(server).handle("work", handler).start();
  server.assign("work", given);
  return server.results.first();
}

const completed = (n: number) => ({
  jobId: `0198a7f0-0000-7000-8000-00000000000${n}`,
  jobType: "part",
  status: "completed",
  result: String(n * n),
});

describe("A wait", () => {
  it("ends the attempt, whatever the handler makes of it", async () => {
    const handlers: ((ctx: Context) => unknown)[] = [
      (ctx) => ctx.sleep("night", 1500.4),
      (ctx) => ctx.sleep("night", 1500).catch(() => "swallowed"),
      async (ctx) => {
        try {
          await ctx.sleep("night", 1500);
        } catch (error) {
          throw new Error("wrapped", { cause: error });
        }
      },
      async (ctx) => {
        await ctx.sleep("night", 1500).catch(() => {});
        await ctx.step("later", () => assert.fail("the attempt is over"));
      },
    ];
    for (const handler of handlers) {
      const server = await aServer();
      const result = await resultOf(server, handler);
      assert.deepEqual(result.wait, { name: "night" });
      assert.deepEqual(
        server.begun.all.map((one) => [one.name, one.kind, one.durationMs, one.event]),
        [["night", "sleep", 1500, undefined]],
      );
    }
  });

  it("is met done by a later attempt", async () => {
    const server = await aServer();
    server.onBegin = ({ kind }) => ({ ...done, result: kind === "event" ? '{"by":"ann"}' : "" });
    const result = await resultOf(server, async (ctx) => {
      await ctx.sleep("night", 10);
      return ctx.waitEvent("reviewed", { key: "f7", timeoutMs: 60_000 });
    });
    assert.equal(result.finish?.result, '{"by":"ann"}');
    const { name, event, key, durationMs } = server.begun.all[1] ?? assert.fail();
    assert.deepEqual([name, event, key, durationMs], ["reviewed:f7", "reviewed", "f7", 60_000]);
  });

  it("for an event that does not come fails the job for good", async () => {
    const server = await aServer();
    server.onBegin = () => ({ answer: "ANSWER_ACCEPTED", state: "WAIT_STATE_TIMED_OUT" });
    const { fail } = await resultOf(server, (ctx) => ctx.waitEvent("never", { timeoutMs: 5 }));
    assert.deepEqual([fail?.error?.type, fail?.isFinal], ["WaitTimeout", true]);
    assert.equal(fail?.error?.message, 'event "never" did not come within 5 ms');
  });

  it("until a time that has passed lasts 0 ms", async () => {
    const server = await aServer();
    server.onBegin = () => ({ ...done, result: "" });
    const result = await resultOf(server, (ctx) => ctx.sleep("until", -3));
    assert.equal(result.fail, undefined);
    assert.equal(server.begun.all[0]?.durationMs, 0);
  });

  it("with a wrong argument fails the job for good", async () => {
    const wrong: [string, (ctx: Context) => unknown][] = [
      ["timeoutMs: must be a number", (ctx) => ctx.waitEvent("x", { timeoutMs: "2h" as never })],
      ["ms: must be a number", (ctx) => ctx.sleep("a", "soon" as never)],
      ["ms: must be at most", (ctx) => ctx.sleep("a", 1e15)],
      ["timeoutMs: must be at most", (ctx) => ctx.waitEvent("x", { timeoutMs: 1e15 })],
      ["jobs[0]: must be a job", (ctx) => ctx.runAll("parts", ["mail" as never])],
      ["jobs[0]: must be a job", (ctx) => ctx.runAll("parts", [Promise.resolve() as never])],
      ["jobs: must be a list", (ctx) => ctx.runAll("parts", { jobType: "mail" } as never)],
      ["jobs: must be a list", (ctx) => ctx.runAll([{ jobType: "mail" }] as never, undefined as never)],
      ['step "a": must be a function', (ctx) => ctx.step("a", 1 as never)],
      ["name: ", (ctx) => ctx.sleep(5 as never, undefined as never)],
      ["name: ", (ctx) => ctx.sleep(7 as never, 1)],
      ["event: ", (ctx) => ctx.waitEvent(7 as never)],
      ["key: ", (ctx) => ctx.waitEvent("x", { key: 7 as never })],
      ["options of waitEvent", (ctx) => ctx.waitEvent("x", { timeout: 7 } as never)],
      ["jobs: must be a list", (ctx) => ctx.runAll("parts", "page" as never)],
      ["failures: must be", (ctx) => ctx.runAll("parts", [], { failures: "raise" as never })],
    ];
    for (const [message, handler] of wrong) {
      const server = await aServer();
      const { fail } = await resultOf(server, handler);
      assert.deepEqual([fail?.error?.type, fail?.isFinal], ["InvalidInput", true], message);
      assert.ok(fail?.error?.message?.startsWith(message), fail?.error?.message);
    }
  });

  it("that a full quota refuses fails the attempt, which is retried", async () => {
    const server = await aServer();
    const text = "max_queued: sub-jobs count for robot, the principal of their worker";
    server.onSubmit = () => {
      throw refusal(status.FAILED_PRECONDITION, text);
    };
    const { fail } = await resultOf(server, (ctx) => ctx.runAll("parts", [{ jobType: "part" }]));
    assert.equal(fail?.isFinal, false);
    assert.ok(fail?.error?.message?.includes(text), fail?.error?.message);
  });

  it("is stored again until a server answers", async () => {
    const server = await aServer();
    let calls = 0;
    server.onBegin = () => {
      calls += 1;
      if (calls === 1) throw refusal(status.UNAVAILABLE, "the replica stops");
      return calls === 2 ? {} : done;
    };
    const result = await resultOf(server, (ctx) => ctx.sleep("night", 10));
    assert.equal(result.finish?.result, "null");
    assert.equal(server.begun.all.length, 3);
  });

  it("stops a handler that is fenced or cancelled", async () => {
    for (const answer of ["ANSWER_FENCED", "ANSWER_CANCEL_REQUESTED"] as const) {
      const server = await aServer();
      server.onBegin = () => ({ answer });
      const reason = promise<string>();
      const worker = aWorker(server).handle("work", async (ctx) => {
        const stopped = aborted(ctx.signal);
        await ctx.sleep("night", 10).catch(() => {});
        await stopped;
        reason.keep(String(ctx.signal.reason));
        ctx.check();
      });
      await worker.start();
      server.assign("work");
      assert.match(await reason.kept, answer === "ANSWER_FENCED" ? /fenced/ : /cancel/);
      if (answer === "ANSWER_CANCEL_REQUESTED") assert.ok((await server.results.first()).cancel);
    }
  });

  it("needs a server that serves waits", async () => {
    const server = await aServer();
    const { fail } = await resultOf(server, (ctx) => ctx.sleep("night", 10), { canWait: false });
    assert.match(fail?.error?.message ?? "", /^the server is older than this worker/);
    assert.equal(server.begun.all.length, 0);
  });
});

describe("Sub-jobs", () => {
  it("are submitted in parts, with their options", async () => {
    const server = await aServer();
    const jobs = Array.from({ length: 1001 }, (_, n) => ({ jobType: "part", payload: { n } }));
    const first = { jobType: "part", priority: 7, delayMs: 1500, runAt: new Date(0), tags: ["a"] };
    const result = await resultOf(server, (ctx) => ctx.runAll("parts", [first, ...jobs]));
    assert.deepEqual(result.wait, { name: "parts" });
    assert.deepEqual(
      server.submitted.all.map(({ name, total, offset, jobs }) => [name, total, offset, jobs.length]),
      [
        ["parts", 1002, 0, 1000],
        ["parts", 1002, 1000, 2],
      ],
    );
    const [one, two] = server.submitted.all[0]?.jobs ?? [];
    assert.equal(one?.payload, "{}");
    assert.deepEqual(JSON.parse(one?.options ?? ""), {
      priority: 7,
      delay: 1.5,
      run_at: "1970-01-01T00:00:00.000Z",
      tags: ["a"],
    });
    assert.equal(two?.payload, '{"n":0}');
  });

  it("return their results in order, or those that failed", async () => {
    const failed = { ...completed(2), status: "failed", result: undefined };
    const stored = [{ name: "parts", kind: "sub_jobs", total: 3, stored: 3 }];
    const jobs = [1, 2, 3].map(() => ({ jobType: "part" }));

    const good = await aServer();
    Object.assign(good, { storedWaits: stored, jobResults: [1, 2, 3].map(completed) });
    const result = await resultOf(good, (ctx) => ctx.runAll("parts", jobs), { attempt: 2 });
    assert.equal(result.finish?.result, "[1,4,9]");

    const bad = await aServer();
    Object.assign(bad, { storedWaits: stored, jobResults: [completed(1), failed, completed(3)] });
    const { fail } = await resultOf(bad, (ctx) => ctx.runAll("parts", jobs), { attempt: 2 });
    assert.deepEqual([fail?.error?.type, fail?.isFinal], ["SubJobsFailed", true]);
    assert.match(fail?.error?.message ?? "", /^1 of 3 sub-jobs of "parts" .*0002 \(failed\)$/);

    const both = await aServer();
    Object.assign(both, { storedWaits: stored, jobResults: [completed(1), failed, {}] });
    const returned = await resultOf(
      both,
      async (ctx) => {
        const all = await ctx.runAll("parts", jobs, { failures: "return" });
        return all.map((one) => [one.status, one.result, one.id === undefined]);
      },
      { attempt: 2 },
    );
    assert.deepEqual(JSON.parse(returned.finish?.result ?? ""), [
      ["completed", 1, false],
      ["failed", null, false],
      ["deleted", null, true],
    ]);
  });

  it("that a server refuses fail the attempt with the field", async () => {
    const server = await aServer();
    server.onSubmit = () => {
      throw refusal(status.INVALID_ARGUMENT, "jobs[0].job_type: secret is in the lane near");
    };
    const { fail } = await resultOf(server, (ctx) => ctx.runAll("parts", [{ jobType: "secret" }]));
    assert.deepEqual(
      [fail?.error?.type, fail?.error?.message],
      ["InvalidInput", "jobs[0].job_type: secret is in the lane near"],
    );
  });
});

describe("Results of what a job came after", () => {
  it("are read page by page", async () => {
    const server = await aServer();
    server.jobResults = [1, 2, 3].map(completed);
    const result = await resultOf(server, async (ctx) => {
      const found: unknown[] = [];
      for await (const one of ctx.results()) found.push(one.result);
      return found;
    });
    assert.equal(result.finish?.result, "[1,4,9]");
  });
});

describe("Names of waits", () => {
  it("are the same in every run, or the job fails for good", async () => {
    const cases: [(ctx: Context) => unknown, RegExp][] = [
      [(ctx) => ctx.sleep("other", 1), /asks for the wait "other", but an earlier run asked for "night"/],
      [(ctx) => ctx.runAll("night", []), /under the name "night" for 0 sub-jobs, but .* a sleep/],
      [(ctx) => ctx.waitEvent("e", { name: "night" }), /for event "e", but .* a sleep/],
    ];
    for (const [handler, message] of cases) {
      const server = await aServer();
      server.storedWaits = [{ name: "night", kind: "sleep" }];
      const { fail } = await resultOf(server, handler, { attempt: 2 });
      assert.deepEqual([fail?.error?.type, fail?.isFinal], ["NondeterministicHandler", true]);
      assert.match(fail?.error?.message ?? "", message);
    }
  });

  it("may follow a call without sub-jobs", async () => {
    const server = await aServer();
    server.storedWaits = [{ name: "parts", kind: "sub_jobs", total: 1, stored: 1 }];
    server.jobResults = [completed(1)];
    const handler = async (ctx: Context) => {
      const none = await ctx.runAll("nothing", []);
      return [...none, ...(await ctx.runAll("parts", [{ jobType: "part" }]))];
    };
    const { finish } = await resultOf(server, handler, { attempt: 2 });
    assert.equal(finish?.result, "[1]");
  });

  it("are unique among steps and waits, and valid", async () => {
    const cases: [(ctx: Context) => unknown, RegExp][] = [
      [async (ctx) => [await ctx.step("a", () => 1), await ctx.sleep("a", 1)], /^wait "a": was used already/],
      [(ctx) => ctx.sleep("", 1), /^name: must be a text/],
      [(ctx) => ctx.sleep("a", NaN), /^ms: must be a number/],
      [(ctx) => ctx.waitEvent("e", { key: "k".repeat(513) }), /^key: must be a text/],
      [(ctx) => ctx.waitEvent("e", { timeout: 1 } as object), /"timeout" is not an option/],
      [(ctx) => ctx.runAll("a", [{ jobType: "p", payload: 1n }]), /^jobs\[0\]\.payload: is a bigint/],
      [(ctx) => ctx.runAll("a", [{ type: "p" } as never]), /^jobs\[0\]: "type" is not an option/],
    ];
    for (const [handler, message] of cases) {
      const server = await aServer();
      const { fail } = await resultOf(server, handler);
      assert.match(fail?.error?.message ?? "", message);
      assert.equal(server.begun.all.length + server.submitted.all.length, 0);
    }
  });
});
