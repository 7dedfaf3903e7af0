import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { delayAfter } from "../src/backoff.js";
import { Connection } from "../src/connection.js";
import { Cancel, InvalidInput, PublicError, Retry, Snooze } from "../src/errors.js";
import { declaration } from "../src/handlers.js";
import { encode, safeText } from "../src/json.js";
import * as outcome from "../src/outcome.js";
import type { Assignment } from "../src/protocol.js";
import { Run } from "../src/run.js";
import { tokenFromEnvironment } from "../src/token.js";
import { Worker } from "../src/worker.js";

const assignment: Assignment = {
  jobId: "0198a7f0-0000-7000-8000-000000000000",
  attempt: 2,
  jobType: "work",
  payload: "{}",
  steps: [],
  leaseMs: 30_000,
  leaseLeftMs: 30_000,
  timeoutMs: 1500,
  traceparent: "",
  lane: "default",
  retries: 0,
  isAnalysis: false,
  tags: [],
  createdBy: "",
  canWait: true,
  isAhead: false,
};

const run = (given: Partial<Assignment> = {}): Run =>
  new Run({ ...assignment, ...given }, undefined);

describe("JSON", () => {
  it("is written as JSON.stringify writes it", () => {
    for (const value of [{ a: [1, "é✓", null, true, { b: undefined }] }, "text", 0, new Date(0)]) {
      assert.equal(encode(value, "result"), JSON.stringify(value));
    }
    assert.equal(encode(undefined, "result"), "null");
  });

  it("may be nested 64 levels deep", () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    assert.equal(encode(nested(64), "result").length, 129);
    assert.throws(() => encode(nested(65), "result"), { name: "InvalidInput" });
  });

  it("refuses by name what would be dropped or changed", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    const cases: [unknown, RegExp][] = [
      [{ n: [1, NaN] }, /^result\.n\[1\]: is NaN/],
      [{ n: Infinity }, /^result\.n: is Infinity/],
      [{ big: 10n }, /^result\.big: is a bigint/],
      [{ f: () => 1 }, /^result\.f: is a function/],
      [Symbol("s"), /^result: is a symbol/],
      [{ m: new Map() }, /^result\.m: is a Map/],
      [{ b: new Uint8Array(1) }, /^result\.b: is binary/],
      ["a\0b", /^result: contains a NUL/],
      [{ t: "\ud800" }, /^result\.t: contains half of a surrogate/],
      [loop, /deep, or contains itself/],
    ];
    for (const [value, rule] of cases) {
      assert.throws(() => encode(value, "result"), { name: "InvalidInput", message: rule });
    }
  });

  it("cuts text without breaking characters", () => {
    assert.equal(safeText("a\0b", 20), "a\\u0000b");
    assert.equal(safeText("ab😀", 3), "ab …");
    assert.equal(safeText("\ud800", 3), "\ufffd");
  });
});

describe("Outcomes", () => {
  const claim = { jobId: assignment.jobId, attempt: 2 };

  it("a value finishes the job, nothing is null", () => {
    assert.deepEqual(outcome.returned(run(), undefined)?.finish, { result: "null" });
    assert.deepEqual(outcome.returned(run(), { a: 1 })?.claim, claim);
  });

  it("a value that is not JSON fails the job without a retry", () => {
    const fail = outcome.returned(run(), 1n)?.fail;
    assert.deepEqual([fail?.error?.type, fail?.isFinal], ["InvalidResult", true]);
  });

  it("an error is told with its name, its message, its stack and its cause", () => {
    class NoLuck extends Error {
      override name = "NoLuck";
    }
    const fail = outcome.threw(run(), new NoLuck("today", { cause: new Error("rain") }))?.fail;
    assert.equal(fail?.error?.type, "NoLuck");
    assert.equal(fail?.error?.message, "today");
    assert.match(String(fail?.error?.traceback), /NoLuck: today[^]*Caused by: Error: rain/);
    assert.equal(fail?.retryAfterMs, undefined);
    assert.equal(outcome.threw(run(), "just text")?.fail?.error?.message, "just text");
  });

  it("only a PublicError has a public message", () => {
    const isPublic = (error: Error) => outcome.threw(run(), error)?.fail?.error?.isPublic;
    assert.equal(isPublic(new PublicError("no page 7")), true);
    assert.equal(isPublic(new Error("row 7")), false);
  });

  it("Retry, Snooze and Cancel say how the job goes on", () => {
    const retry = outcome.threw(run(), new Retry("busy", { afterMs: 1234.4 }))?.fail;
    assert.equal(retry?.retryAfterMs, 1234);
    assert.equal(retry?.error?.message, "busy");
    assert.deepEqual(outcome.threw(run(), new Snooze(50))?.snooze, { delayMs: 50 });
    assert.equal(outcome.threw(run(), new Snooze(NaN))?.fail?.error?.type, "InvalidInput");
    assert.deepEqual(outcome.threw(run(), new Cancel("why"))?.cancel, { reason: "why" });
  });

  it("a handler that was told to stop ends as it was told", () => {
    const told = (reason: "cancel" | "timeout" | "fenced" | "shutdown"): Run => {
      const one = run();
      one.abort(reason);
      return one;
    };
    const late = told("timeout");
    const message = "took longer than its timeout of 1.5 s";
    assert.deepEqual(outcome.returned(late, 1)?.fail?.error, {
      type: "Timeout",
      message,
      isPublic: true,
    });
    assert.deepEqual(outcome.threw(told("shutdown"), new Error("x"))?.release, {});
    assert.deepEqual(outcome.returned(told("shutdown"), 1)?.finish, { result: "1" });
    assert.equal(outcome.returned(told("fenced"), 1), undefined);
    assert.equal(outcome.threw(told("fenced"), new Error("x")), undefined);
    const cancelled = told("cancel");
    assert.deepEqual(outcome.threw(cancelled, cancelled.signal.reason)?.cancel, { reason: "" });
    assert.deepEqual(outcome.returned(told("cancel"), 1)?.finish, { result: "1" });
    assert.equal(outcome.threw(told("cancel"), new Error("own"))?.fail?.error?.message, "own");
  });

  it("an analysis says its plan and its cost", () => {
    const plan = (value: unknown) => outcome.returned(run({ isAnalysis: true }), value);
    const said = { plan: [1], cost: { amount: 2.5, currency: "EUR" }, warnings: ["x"] };
    assert.deepEqual(
      JSON.parse(
        plan({ plan: [1], cost: 2.5, currency: "EUR", warnings: ["x"] })?.finish?.result ?? "",
      ),
      said,
    );
    const tokens = JSON.parse(plan({ tokens: 9 })?.finish?.result ?? "");
    assert.deepEqual(tokens, { plan: null, cost: { tokens: 9 }, warnings: [] });
    assert.match(plan({ cost: 1 })?.fail?.error?.message ?? "", /^analysis\.currency: /);
    assert.match(plan("cheap")?.fail?.error?.message ?? "", /^analysis: /);
  });
});

describe("Options", () => {
  it("are published in the words of the protocol", () => {
    const said = declaration("work", {
      lane: "slow",
      timeoutMs: 1500,
      maxRetries: 5,
      retry: { baseMs: 50, jitter: 0 },
      approval: { belowCost: 3, currency: "EUR", expiresMs: 60_000 },
      limits: ["openai"],
      uniqueForMs: 60_000,
      uniqueBy: ["path"],
    });
    assert.deepEqual(JSON.parse(said), {
      lane: "slow",
      timeout_s: 1.5,
      max_retries: 5,
      retry: { base: 0.05, jitter: 0 },
      approval: { below_cost: 3, currency: "EUR", expires_s: 60 },
      limits: ["openai"],
      unique_for_s: 60,
      unique_by: ["path"],
    });
    assert.equal(declaration("work", {}), "{}");
  });

  // As plain JavaScript gives them.
  const worker = (more: object): Worker => new Worker({ server: "localhost:1", token: "t", ...more });

  it("that nobody knows are refused by name, with those that are known", async () => {
    const handle = (more: object): Worker => worker({}).handle("work", more, () => {});
    const cases: [() => unknown, RegExp][] = [
      [() => worker({ concurrency: 5 }), /^options of Worker: "concurrency" .*, maxInFlight, /],
      [() => new Worker(null as never), /^options of Worker: must be an object/],
      [() => worker({ tls: { rejectUnauthorized: false } }), /^tls: "rejectUnauthorized" .* ca, /],
      [() => handle({ max_retries: 5 }), /^options of work: "max_retries" .*, maxRetries, /],
      [() => handle({ constructor: 5 }), /^options of work: "constructor" is not an option/],
      [() => handle({ retry: { base: 1 } }), /^options of work: retry: "base" .* baseMs, /],
      [() => handle({ approval: { below: 1 } }), /^options of work: approval: "below" .* belowCost/],
      [() => handle({ approval: null }), /^options of work: approval: must be an object/],
      [() => worker({}).stop({ grace: 1 } as never), /^options of stop: "grace" .* graceMs/],
      [() => new Retry("x", { after: 1 } as never), /^options of Retry: "after" .* afterMs, cause/],
    ];
    for (const [say, message] of cases) assert.throws(say, { name: "InvalidInput", message });
    const free = outcome.returned(run({ isAnalysis: true }), { costs: 5 })?.fail?.error;
    assert.match(free?.message ?? "", /^analysis: "costs" is not an option; options are plan, cost, /);
    await worker({ tls: true, version: "1" }).handle("work", { retry: {} }, () => {}).stop();
  });

  it("of another type than theirs are refused by name", () => {
    const wrong = { server: [undefined, [5], []], token: [5, ""], logger: [{}, "stderr"] };
    const numbers = ["5", -1, NaN, Infinity];
    const whole = { maxInFlight: [0, "5", 1.5] };
    const cases = { ...wrong, ...whole, graceMs: numbers, cancelGraceMs: numbers };
    for (const [field, values] of Object.entries(cases)) {
      for (const value of values) {
        assert.throws(() => worker({ [field]: value }), { name: "InvalidInput", field });
      }
    }
    assert.throws(() => worker({}).stop({ graceMs: -1 }), { field: "graceMs" });
    const tls = { key: "no key", cert: "no certificate" };
    assert.throws(() => worker({ tls }), { name: "InvalidInput", field: "tls" });
  });

  it("a token is never sent in plain text to another machine", () => {
    for (const server of ["db.example:8081", "10.0.0.1:8081", "localhost.example:1"]) {
      assert.throws(() => new Connection(server, "t", false), InvalidInput);
    }
    for (const server of ["localhost:1", "127.0.0.1:1", "[::1]:1", "unix:s.sock"]) {
      new Connection(server, "t", false).close();
    }
    new Connection(["db.example:8081"], "t").close();
    for (const server of ["", "a", "a:0", "a:65536", "http://a:1", "a:1/path", "a:1,", "::1:1"]) {
      assert.throws(() => new Connection(server, "t"), /^InvalidInput: server: must be host:port/);
    }
  });

  it("what is no token is refused, and not told", async () => {
    const isSilent = (error: Error): boolean => !error.message.includes("secret");
    assert.throws(() => new Connection("localhost:1", "secret\nx"), isSilent);
    assert.throws(() => new Connection("localhost:1", " "), InvalidInput);
    const connection = new Connection("localhost:1", () => "secret\nx");
    await assert.rejects(connection.call("heartbeat", { workerId: "", claims: [] }, 100), isSilent);
    connection.close();
    new Connection("localhost:1", "secret\n").close();
  });

  it("a token that a function cannot give is an error", async () => {
    const sealed = new Connection("localhost:1", () => Promise.reject(new Error("it is sealed")));
    const message = "token: cannot be read: it is sealed";
    await assert.rejects(sealed.open(() => assert.fail()), { name: "InvalidInput", message });
    sealed.close();
  });

  it("the token may come from the environment", () => {
    assert.equal(tokenFromEnvironment({ LANEWAY_TOKEN: "t" }), "t");
    assert.throws(() => tokenFromEnvironment({}), /^InvalidInput: token: /);
  });
});

describe("Backoff", () => {
  it("doubles up to the longest, at random between half of it and all", () => {
    const backoff = { firstMs: 100, longestMs: 1000 };
    const most = [1, 2, 3, 4, 5, 400].map((n) => delayAfter(n, backoff, () => 1));
    assert.deepEqual(most, [100, 200, 400, 800, 1000, 1000]);
    assert.equal(
      delayAfter(2, backoff, () => 0),
      100,
    );
  });
});
