import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { CallRetry, retryAfterMs } from "../src/call_retry.js";
import { InvalidInput, Retry, Snooze } from "../src/index.js";
import { aServer, aWorker } from "./worker_harness.js";

const soon = { baseMs: 1, capMs: 1, jitter: 0 };
const hour = { baseMs: 3_600_000, capMs: 3_600_000 };

/** A refused call, as HTTP clients throw it. */
function busy(header: string): Error {
  const headers = new Headers({ "Retry-After": header });
  return Object.assign(new Error("busy"), { response: { headers } });
}

describe("A call that is tried again", () => {
  it("succeeds without a charge, and its failures are in the job's log", async () => {
    const server = await aServer();
    let calls = 0;
    await aWorker(server)
      .handle("work", async (ctx) =>
        ctx.retry(
          async () => {
            calls += 1;
            if (calls < 3) throw new TypeError("busy");
            return "done";
          },
          { policy: soon },
        ),
      )
      .start();
    server.assign("work");
    const result = await server.results.first();
    assert.equal(result.finish?.result, '"done"');
    assert.equal(calls, 3);
    const lines = server.updates.all.flatMap((update) => update.lines);
    assert.deepEqual(
      lines.map(({ level }) => level),
      ["warning", "warning"],
    );
    assert.match(lines[0]?.message ?? "", /^try 1 of 5 failed with TypeError; next in /);
  });

  it("fails the attempt with its last error", async () => {
    const server = await aServer();
    let calls = 0;
    const broken = (): never => {
      calls += 1;
      throw new RangeError("never");
    };
    await aWorker(server)
      .handle("work", (ctx) => ctx.retry(broken, { tries: 2, policy: soon }))
      .start();
    server.assign("work");
    const { fail } = await server.results.first();
    assert.deepEqual([fail?.error?.type, fail?.error?.message, calls], ["RangeError", "never", 2]);
  });

  it("counts as progress while it pauses, and ends there when the job is cancelled", async () => {
    const server = await aServer();
    let calls = 0;
    await aWorker(server)
      .handle("work", (ctx) =>
        ctx.retry(
          () => {
            calls += 1;
            throw new Error("busy");
          },
          { policy: hour },
        ),
      )
      .start();
    server.assign("work");
    await server.updates.first();
    server.onBeat = () => "ANSWER_CANCEL_REQUESTED";
    server.beat();
    assert.ok((await server.results.first()).cancel);
    assert.equal(calls, 1);
  });

  it("ends at the job's timeout", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("work", (ctx) => ctx.retry(() => Promise.reject(new Error("busy")), { policy: hour }))
      .start();
    server.assign("work", { timeoutMs: 50 });
    assert.equal((await server.results.first()).fail?.error?.type, "Timeout");
  });

  it("a call that nobody waits for does not end the process", async () => {
    const server = await aServer();
    await aWorker(server)
      .handle("hasty", (ctx) => {
        void ctx.retry(() => Promise.reject(new Error("nobody hears this")), { tries: 1 });
      })
      .start();
    server.assign("hasty");
    assert.equal((await server.results.first()).finish?.result, "null");
  });
});

describe("The pause between tries", () => {
  it("grows to a minute and is spread", () => {
    const patience = new CallRetry({ tries: 5000 });
    for (const [n, usual] of [
      [1, 1000],
      [3, 4000],
      [9, 60_000],
      [4000, 60_000],
    ] as const) {
      assert.equal(patience.waitMs(new Error(), n, () => 0), 0.8 * usual);
      assert.equal(patience.waitMs(new Error(), n, () => 1), 1.2 * usual);
    }
  });

  it("is never shorter than asked for", () => {
    assert.equal(new CallRetry().waitMs(busy("30"), 1, () => 0), 30_000);
    assert.equal(new CallRetry().waitMs(busy("30"), 1, () => 1), 36_000);
  });

  it("is what the refused call asks for, up to an hour", () => {
    const cases: [unknown, number | undefined][] = [
      [busy("7"), 7000],
      [busy("0"), 0],
      [busy("100000"), 3_600_000],
      [busy("-3"), 0],
      [busy("soon"), undefined],
      [busy(""), undefined],
      [Object.assign(new Error(), { headers: { "Retry-After": "2" } }), 2000],
      [Object.assign(new Error(), { retryAfter: 1.5 }), 1500],
      [Object.assign(new Error(), { retryAfter: NaN, response: null }), undefined],
      [new Retry("later", { afterMs: 5 }), 5],
      [new Retry("later"), undefined],
      [new Error(), undefined],
      ["text", undefined],
      [null, undefined],
    ];
    for (const [error, ms] of cases) assert.equal(retryAfterMs(error), ms);
  });

  it("counts a date in the header from now", () => {
    const ms = retryAfterMs(busy(new Date(Date.now() + 100_000).toUTCString())) ?? 0;
    assert.ok(ms > 80_000 && ms <= 100_000, String(ms));
  });

  it("there is none behind an error that is final", () => {
    const on = (error: unknown): boolean => error instanceof TypeError;
    assert.equal(new CallRetry().waitMs(new Snooze(1), 1), undefined);
    assert.equal(new CallRetry().waitMs(new InvalidInput("x", "y"), 1), undefined);
    assert.equal(new CallRetry({ on }).waitMs(new Error(), 1), undefined);
    assert.equal(new CallRetry({ tries: 2 }).waitMs(new Error(), 2), undefined);
    // A handler that asks for another try gets it, whatever `on` says.
    assert.equal(new CallRetry({ on, policy: soon }).waitMs(new Retry(), 1), 1);
  });

  it("options that break a rule are refused by name", () => {
    const cases: [object, RegExp][] = [
      [{ tries: 0 }, /^tries: must be a whole number from 1, not 0/],
      [{ tries: 1.5 }, /^tries/],
      [{ on: TypeError.name }, /^on: must be a function/],
      [{ times: 3 }, /^options of retry: "times" is not an option/],
      [{ policy: { base: 1 } }, /^policy: "base" is not an option/],
      [{ policy: { baseMs: -1 } }, /^policy.baseMs: must be a number from 0 /],
      [{ policy: { baseMs: 10, capMs: 5 } }, /^policy.capMs: must be a number from 10 /],
      [{ policy: { jitter: NaN } }, /^policy.jitter/],
    ];
    for (const [options, message] of cases) {
      assert.throws(() => new CallRetry(options), { name: "InvalidInput", message });
    }
  });
});
