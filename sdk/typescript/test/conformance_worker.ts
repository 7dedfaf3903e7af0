/** The handlers of tests/conformance/README.md. */

import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import {
  Cancel,
  type Context,
  type Handler,
  type HandlerOptions,
  InvalidInput,
  Retry,
  Snooze,
  WaitTimeout,
  Worker,
} from "../src/index.js";

const TICK_MS = 10;
const SOON = { baseMs: 50, capMs: 50, factor: 1, jitter: 0 };

interface Payload {
  tag?: string;
  value: unknown;
  times: number;
  after: number;
  seconds: number;
  reason: string;
  gate: string;
  count: number;
  cost: number;
  key: string;
}

type Ctx = Context<Payload>;

class NoLuck extends Error {
  override name = "NoLuck";
}

function said(name: string): string {
  const value = process.env[`LANEWAY_CONFORMANCE_${name}`];
  if (value === undefined) throw new InvalidInput(`LANEWAY_CONFORMANCE_${name}`, "must be set");
  return value;
}

function note(what: string, ctx: Ctx, text: string | null = null): void {
  const line = { what, job: ctx.jobId, attempt: ctx.attempt, note: text };
  appendFileSync(said("LOG"), `${JSON.stringify(line)}\n`);
}

/** Waits for a gate; throws when the signal is aborted. */
async function passed(gate: string, signal?: AbortSignal): Promise<void> {
  while (!existsSync(join(said("GATES"), gate))) {
    await sleep(TICK_MS, undefined, signal ? { signal } : {});
  }
}

const handlers: Record<string, Handler<Payload>> = {
  echo: (_, { value }) => value,

  fail: ({ attempt }, { times }) => {
    if (attempt <= times) throw new NoLuck(`no luck in attempt ${attempt}`);
    return { attempt };
  },

  again: ({ attempt }, { after }) => {
    if (attempt === 1) throw new Retry("busy", { afterMs: after * 1000 });
    return { attempt };
  },

  snooze: ({ attempt }, { seconds }) => {
    if (attempt === 1) throw new Snooze(seconds * 1000);
    return { attempt };
  },

  give_up: (_, { reason }) => {
    throw new Cancel(reason);
  },

  hold: async (ctx, { gate }) => {
    await passed(gate, ctx.signal);
    return { attempt: ctx.attempt };
  },

  deaf: async (ctx, { gate }) => {
    await passed(gate);
    return { attempt: ctx.attempt };
  },

  resume: async (ctx, { gate }) => {
    const found = ctx.checkpoint;
    if (found === null) {
      await ctx.save({ at: 1, text: "é✓" });
      note("saved", ctx);
      await passed(gate, ctx.signal);
    }
    return { found };
  },

  steps: async (ctx) => {
    const one = await ctx.step("one", () => {
      note("one", ctx);
      return { n: 1 };
    });
    if (ctx.attempt === 1) throw new NoLuck("between the steps");
    const two = await ctx.step("two", () => {
      note("two", ctx);
      return ctx.attempt;
    });
    return { one, two };
  },

  report: async (ctx, { gate }) => {
    ctx.progress(3, 4, "three é");
    ctx.log.info("first");
    ctx.log.warning("second é");
    note("reported", ctx);
    await passed(gate, ctx.signal);
  },

  chatty: async (ctx, { times }) => {
    for (let n = 1; n <= times; n += 1) await ctx.save({ at: n });
    return { saved: times };
  },

  slow: async (ctx) => {
    await sleep(3_600_000, undefined, { signal: ctx.signal });
  },

  sleep: async (ctx, { seconds }) => {
    await sleep(seconds * 1000, undefined, { signal: ctx.signal });
    return { attempt: ctx.attempt };
  },

  not_json: () => 10n,

  facts: (ctx) => ({
    max_retries: ctx.maxRetries,
    is_last_attempt: ctx.isLastAttempt,
    tags: ctx.tags,
    created_by: ctx.createdBy ?? "",
  }),

  typed: (_, { count }) => count,

  limited: async (ctx) => {
    await ctx.limit("conformance", async () => {
      note("in", ctx);
      await sleep(20, undefined, { signal: ctx.signal });
      note("out", ctx);
    });
  },

  patient: async (ctx, { times }) => {
    let calls = 0;
    const call = (): { calls: number } => {
      calls += 1;
      note("call", ctx);
      if (calls <= times) throw new NoLuck(`no luck in call ${calls}`);
      return { calls };
    };
    return ctx.retry(call, { tries: 3, policy: SOON });
  },

  waits: async (ctx) => {
    const found = await ctx.step("look", () => {
      note("look", ctx);
      return [1, 2];
    });
    const jobs = found.map((value) => ({ jobType: `${ctx.lane}.echo`, payload: { value } }));
    const parts = await ctx.runAll("parts", jobs);
    await ctx.sleep("nap", 50);
    try {
      await ctx.waitEvent("never", { timeoutMs: 50 });
    } catch (error) {
      if (!(error instanceof WaitTimeout)) throw error;
      return { parts, timed_out: true };
    }
    return { parts, timed_out: false };
  },

  gather: async (ctx, { key }) => {
    const before: unknown[] = [];
    for await (const one of ctx.results()) before.push(one.status === "completed" ? one.result : one.status);
    const sent = await ctx.waitEvent("gathered", { key, timeoutMs: 60_000 });
    return { before, sent };
  },

  planned: (_, { cost }) => ({ spent: cost }),
};

const options: Record<string, HandlerOptions<Payload>> = {
  slow: { timeoutMs: 300 },
  typed: {
    arguments: {
      type: "object",
      properties: { count: { type: "integer" }, tag: { type: "string" } },
      required: ["count"],
      additionalProperties: false,
    },
    parse: (payload) => {
      const given = payload as Payload;
      if (!Number.isInteger(given.count)) throw new InvalidInput("count", "must be an integer");
      return given;
    },
  },
  planned: {
    approval: true,
    analyze: (ctx, { cost }) => {
      note("analyzed", ctx);
      return { plan: { for: cost }, cost, currency: "EUR", warnings: ["not cheap"] };
    },
  },
};

/** The handler, with notes of its begin and its end. */
function noted(handler: Handler<Payload>): Handler<Payload> {
  return async (ctx, payload) => {
    note("begin", ctx, payload.tag ?? null);
    try {
      const result = await handler(ctx, payload);
      note("end", ctx);
      return result;
    } catch (error) {
      note(ctx.cancelled ? "stopped" : "end", ctx);
      throw error;
    }
  };
}

const worker = new Worker({
  server: said("SERVER"),
  token: said("TOKEN"),
  maxInFlight: Number(said("IN_FLIGHT")),
  graceMs: Number(said("GRACE_MS")),
  cancelGraceMs: Number(said("CANCEL_GRACE_MS")),
});
for (const lane of said("LANES").split(",")) {
  for (const [name, handler] of Object.entries(handlers)) {
    const all = { lane, maxRetries: 3, retry: SOON, ...options[name] };
    worker.handle(`${lane}.${name}`, all, noted(handler));
  }
}
await worker.run();
// Handlers that do not listen may still hold the process.
process.exit(0);
