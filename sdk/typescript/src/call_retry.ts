/** Retries of a call inside a handler, without spending a retry of its job. */

import {
  Cancel,
  InvalidInput,
  PublicError,
  Retry,
  ServerError,
  Snooze,
  StaleAttempt,
  Stopped,
} from "./errors.js";
import type { RetryPolicy } from "./handlers.js";
import { checkOptions, type Names } from "./options.js";

const LONGEST_RETRY_AFTER_MS = 3_600_000;
const LONGEST_WAIT_MS = 366 * 86_400_000;
const MAX_FACTOR = 100_000;
// The exponent stops here, as it does for retries of a job.
const MAX_STEPS = 60;

/** How often a call is tried, after which errors, and with which pauses. */
export interface RetryOptions {
  /** Calls in total; 5 by default. */
  tries?: number;
  /** Errors to retry; all by default, but never Laneway's errors. */
  on?: (error: unknown) => boolean;
  /** By default 1, 2, 4 … 60 s, each ± 20 %. */
  policy?: RetryPolicy;
}

const KNOWN: Names<RetryOptions> = { tries: true, on: true, policy: true };
const KNOWN_OF_POLICY: Names<RetryPolicy> = { baseMs: true, capMs: true, factor: true, jitter: true };
// These errors are about the job or the worker: the call itself has not failed.
const FINAL = [Snooze, Cancel, PublicError, InvalidInput, Stopped, StaleAttempt, ServerError];

export class CallRetry {
  readonly tries: number;
  readonly #on: (error: unknown) => boolean;
  readonly #policy: Required<RetryPolicy>;

  constructor(options: RetryOptions = {}) {
    checkOptions(options, KNOWN, "options of retry");
    const { tries = 5, on = () => true, policy = {} } = options;
    if (!Number.isInteger(tries) || tries < 1) {
      throw new InvalidInput("tries", `must be a whole number from 1, not ${String(tries)}`);
    }
    if (typeof on !== "function") throw new InvalidInput("on", "must be a function");
    checkOptions(policy, KNOWN_OF_POLICY, "policy");
    const { baseMs = 1000, capMs = 60_000, factor = 2, jitter = 0.2 } = policy;
    within("policy.baseMs", baseMs, 0, LONGEST_WAIT_MS);
    within("policy.capMs", capMs, baseMs, LONGEST_WAIT_MS);
    within("policy.factor", factor, 1, MAX_FACTOR);
    within("policy.jitter", jitter, 0, 1);
    this.tries = tries;
    this.#on = on;
    this.#policy = { baseMs, capMs, factor, jitter };
  }

  /** Milliseconds to wait after the n-th try failed; undefined: the error is final. */
  waitMs(error: unknown, n: number, random = Math.random): number | undefined {
    if (n >= this.tries || FINAL.some((kind) => error instanceof kind)) return undefined;
    if (!(error instanceof Retry) && !this.#on(error)) return undefined;
    const asked = retryAfterMs(error);
    // Never earlier than requested, and not all at once.
    if (asked !== undefined) return asked * (1 + this.#policy.jitter * random());
    const { baseMs, capMs, factor, jitter } = this.#policy;
    const wait = baseMs === 0 ? 0 : Math.min(capMs, baseMs * factor ** Math.min(n - 1, MAX_STEPS));
    return wait * (1 + jitter * (2 * random() - 1));
  }
}

/** Milliseconds to wait that a failed call requests, directly or with `Retry-After`. */
export function retryAfterMs(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { retryAfter, response, headers } = error as {
    retryAfter?: unknown;
    response?: { headers?: unknown } | null;
    headers?: unknown;
  };
  let asked = error instanceof Retry ? milliseconds(error.afterMs, 1) : undefined;
  asked ??= milliseconds(retryAfter, 1000);
  asked ??= milliseconds(header(response?.headers ?? headers), 1000);
  return asked === undefined ? undefined : Math.min(Math.max(asked, 0), LONGEST_RETRY_AFTER_MS);
}

/** The `Retry-After` of `Headers`, or of a plain object as in Node.js. */
function header(headers: unknown): unknown {
  if (typeof headers !== "object" || headers === null) return undefined;
  if ("get" in headers && typeof headers.get === "function") return headers.get("retry-after");
  const found = Object.entries(headers).find(([name]) => name.toLowerCase() === "retry-after");
  return found?.[1];
}

/** Milliseconds from a number in that unit, a number as text, or a date. */
function milliseconds(asked: unknown, unit: number): number | undefined {
  if (typeof asked !== "number" && typeof asked !== "string") return undefined;
  const isEmpty = typeof asked === "string" && asked.trim() === "";
  const number = isEmpty ? NaN : Number(asked);
  if (!Number.isNaN(number)) return number * unit;
  const at = typeof asked === "string" ? Date.parse(asked) : NaN;
  return Number.isNaN(at) ? undefined : at - Date.now();
}

function within(field: string, value: number, low: number, high: number): void {
  if (typeof value !== "number" || !(value >= low && value <= high)) {
    throw new InvalidInput(field, `must be a number from ${low} to ${high}`);
  }
}
