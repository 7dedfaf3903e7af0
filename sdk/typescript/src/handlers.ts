/** The handlers of a worker by job type, and their options. */

import type { Context } from "./context.js";
import { InvalidInput } from "./errors.js";
import { encode, type Json } from "./json.js";
import { checkOptions, type Names } from "./options.js";
import type { JobType } from "./protocol.js";

type Awaitable<T> = T | PromiseLike<T>;

/** The function of a job type; returns JSON, or throws Retry, Snooze or Cancel. */
export type Handler<P> = (ctx: Context<P>, payload: P) => Awaitable<unknown>;

/** The plan and cost estimate of a job: money with its currency, or tokens. */
export interface Analysis {
  plan?: unknown;
  cost?: number;
  /** Three capital letters. */
  currency?: string;
  tokens?: number;
  warnings?: string[];
}

/** The jobs that need an approval; without options all of them. */
export interface Approval {
  /** Jobs below this cost, by their analysis, need none. */
  belowCost?: number;
  currency?: string;
  belowTokens?: number;
  /** The submitter of a job may not approve it. */
  twoPerson?: boolean;
  expiresMs?: number;
}

/** Waits min(cap, base · factor^(n-1)) before the n-th retry, spread by ± jitter (of 1). */
export interface RetryPolicy {
  baseMs?: number;
  capMs?: number;
  factor?: number;
  jitter?: number;
}

/** Options of a job type; they are published, so that every submit is checked. */
export interface HandlerOptions<P = unknown> {
  /** Created if it is missing; an operator's settings are kept. */
  lane?: string;
  /** Higher first; 0 by default. */
  priority?: number;
  /** 3 by default. */
  maxRetries?: number;
  retry?: RetryPolicy;
  /** The longest time for one attempt. */
  timeoutMs?: number;
  /** The sign that an attempt is alive: heartbeats of its worker, or its progress. */
  stale?: "heartbeat" | "progress";
  /** Limits held for the whole run. */
  limits?: string[];
  approval?: boolean | Approval;
  /** Jobs older than this fail instead of starting. */
  maxAgeMs?: number;
  /** At most one job in this time, also after it has ended. */
  uniqueForMs?: number;
  /** The arguments that form the unique key; all of them by default. */
  uniqueBy?: readonly string[];
  /** JSON Schema of the payload, checked when a job is submitted. */
  arguments?: { [key: string]: Json };
  /** Reads the payload before the handler runs; if it throws, the job fails without a retry. */
  parse?: (payload: unknown) => P;
  /** Plans and estimates a job before its approval. */
  analyze?: (ctx: Context<P>, payload: P) => Awaitable<Analysis>;
}

const KNOWN: Names<HandlerOptions> = {
  lane: true,
  priority: true,
  maxRetries: true,
  retry: true,
  timeoutMs: true,
  stale: true,
  limits: true,
  approval: true,
  maxAgeMs: true,
  uniqueForMs: true,
  uniqueBy: true,
  arguments: true,
  parse: true,
  analyze: true,
};
const KNOWN_OF_RETRY: Names<RetryPolicy> = { baseMs: true, capMs: true, factor: true, jitter: true };
const KNOWN_OF_APPROVAL: Names<Approval> = {
  belowCost: true,
  currency: true,
  belowTokens: true,
  twoPerson: true,
  expiresMs: true,
};

/** A registered handler; its payload is the result of `parse`. */
export interface Definition {
  jobType: string;
  handler: Handler<any>;
  options: HandlerOptions<any> | undefined;
}

export class Handlers {
  readonly #definitions = new Map<string, Definition>();

  add(definition: Definition): void {
    const { jobType } = definition;
    if (typeof jobType !== "string" || jobType === "") {
      throw new InvalidInput("jobType", "must be the name of a job type");
    }
    if (typeof definition.handler !== "function") {
      throw new InvalidInput(`handler of ${jobType}`, "must be a function");
    }
    if (this.#definitions.has(jobType)) {
      throw new InvalidInput(`handler of ${jobType}`, "is already registered");
    }
    if (definition.options !== undefined) check(jobType, definition.options);
    this.#definitions.set(jobType, definition);
  }

  get size(): number {
    return this.#definitions.size;
  }

  get(jobType: string): Definition | undefined {
    return this.#definitions.get(jobType);
  }

  /** The job types as declared to the server. */
  jobTypes(): JobType[] {
    return [...this.#definitions.values()].map(({ jobType, options }) => ({
      name: jobType,
      isolation: "ISOLATION_ASYNC" as const,
      hasAnalysis: options?.analyze !== undefined,
      declaration: options === undefined ? "" : declaration(jobType, options),
    }));
  }
}

/** The declaration of a job type as JSON; without one the published declaration applies. */
export function declaration(jobType: string, options: HandlerOptions<any>): string {
  const { retry, approval } = options;
  const fields = {
    arguments: options.arguments,
    lane: options.lane,
    priority: options.priority,
    max_retries: options.maxRetries,
    timeout_s: seconds(options.timeoutMs),
    stale: options.stale,
    retry: retry && {
      base: seconds(retry.baseMs),
      cap: seconds(retry.capMs),
      factor: retry.factor,
      jitter: retry.jitter,
    },
    limits: options.limits,
    approval:
      typeof approval === "object"
        ? {
            below_cost: approval.belowCost,
            currency: approval.currency,
            below_tokens: approval.belowTokens,
            two_person: approval.twoPerson,
            expires_s: seconds(approval.expiresMs),
          }
        : approval,
    max_age_s: seconds(options.maxAgeMs),
    unique_for_s: seconds(options.uniqueForMs),
    unique_by: options.uniqueBy,
  };
  return encode(fields, `options of ${jobType}`);
}

function check(jobType: string, options: HandlerOptions<any>): void {
  const of = `options of ${jobType}`;
  checkOptions(options, KNOWN, of);
  const { retry, approval } = options;
  if (retry !== undefined) checkOptions(retry, KNOWN_OF_RETRY, `${of}: retry`);
  if (approval !== undefined && typeof approval !== "boolean") {
    checkOptions(approval, KNOWN_OF_APPROVAL, `${of}: approval`);
  }
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
