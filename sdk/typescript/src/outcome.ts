/** From how a handler ended to the result of its attempt. */

import { Cancel, InvalidInput, PublicError, Retry, Snooze } from "./errors.js";
import type { Analysis } from "./handlers.js";
import { encode, safeText } from "./json.js";
import { checkOptions, type Names } from "./options.js";
import type { Result } from "./protocol.js";
import type { Run } from "./run.js";

const LONGEST_MESSAGE = 4000;
const LONGEST_TRACEBACK = 16_000;
const LONGEST_DELAY_MS = 100 * 366 * 86_400_000;

/** The handler returned; undefined where nothing may be written any more. */
export function returned(run: Run, value: unknown): Result | undefined {
  if (run.stopReason === "timeout" || run.stopReason === "fenced") return stopped(run);
  try {
    const result = run.isAnalysis ? analysis(value) : encode(value, "result");
    return { claim: run.claim, ranMs: run.ranMs, finish: { result } };
  } catch (error) {
    return failed(run, error);
  }
}

/** The handler threw. */
export function threw(run: Run, error: unknown): Result | undefined {
  const isOwn = run.stopReason === undefined;
  if (!isOwn && (run.stopReason !== "cancel" || isAbort(run, error))) return stopped(run);
  return failed(run, error);
}

/** A handler that was told to stop, and did or did not. */
export function stopped(run: Run): Result | undefined {
  const { claim, ranMs } = run;
  switch (run.stopReason) {
    case "cancel":
      return { claim, ranMs, cancel: { reason: "" } };
    case "timeout": {
      const message = `took longer than its timeout of ${run.assignment.timeoutMs / 1000} s`;
      return { claim, ranMs, fail: { error: { type: "Timeout", message, isPublic: true } } };
    }
    case "shutdown":
      return { claim, ranMs, release: {} };
    default:
      return undefined;
  }
}

/** The handler cannot take the payload, which will not get better: no retry. */
export function unreadable(run: Run, error: unknown): Result {
  const message = safeText(textOf(error), LONGEST_MESSAGE);
  const fail = { error: { type: "InvalidInput", message, isPublic: true }, isFinal: true };
  return { claim: run.claim, ranMs: run.ranMs, fail };
}

/** The server does not take the result: that is the job's failure. */
export function refused(result: Result, why: string): Result {
  const message = safeText(`the server refused the result: ${why}`, LONGEST_MESSAGE);
  const { claim = null, ranMs = 0 } = result;
  return { claim, ranMs, fail: { error: { type: "InvalidResult", message, isPublic: true } } };
}

export function failed(run: Run, error: unknown): Result {
  const { claim, ranMs } = run;
  if (error instanceof Snooze) {
    const delayMs = delay(error.delayMs);
    if (delayMs !== undefined) return { claim, ranMs, snooze: { delayMs } };
    return failed(run, new InvalidInput("Snooze", "must say a number of milliseconds"));
  }
  if (error instanceof Cancel) {
    const reason = safeText(String(error.reason), LONGEST_MESSAGE);
    return { claim, ranMs, cancel: { reason } };
  }
  const fail = { error: described(error) };
  const retryAfterMs = error instanceof Retry ? delay(error.afterMs) : undefined;
  return retryAfterMs === undefined
    ? { claim, ranMs, fail }
    : { claim, ranMs, fail: { ...fail, retryAfterMs } };
}

interface Described {
  type: string;
  message: string;
  traceback: string;
  isPublic: boolean;
}

/** An error as stored: its name, its message, and where it came from. */
function described(error: unknown): Described {
  const name = error instanceof Error ? textOf(error.name) || "Error" : "Error";
  return {
    type: safeText(name, 200),
    message: safeText(textOf(error) || name, LONGEST_MESSAGE),
    traceback: error instanceof Error ? safeText(trace(error), LONGEST_TRACEBACK) : "",
    isPublic: error instanceof PublicError,
  };
}

function trace(error: Error, depth = 0): string {
  const own = textOf(error.stack ?? "");
  if (!(error.cause instanceof Error) || depth > 8) return own;
  return `${own}\nCaused by: ${trace(error.cause, depth + 1)}`;
}

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error);
  } catch {
    return "its text cannot be had";
  }
}

/** What a call that was given the signal throws when it is broken off. */
function isAbort(run: Run, error: unknown): boolean {
  return error === run.signal.reason || (error instanceof Error && ABORTS.has(error.name));
}

const ABORTS = new Set(["AbortError", "Stopped", "StaleAttempt"]);

function delay(ms: number | undefined): number | undefined {
  if (typeof ms !== "number" || Number.isNaN(ms)) return undefined;
  return Math.round(Math.min(Math.max(0, ms), LONGEST_DELAY_MS));
}

const KNOWN: Names<Analysis> = {
  plan: true,
  cost: true,
  currency: true,
  tokens: true,
  warnings: true,
};

/** An analysis as stored. */
function analysis(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidInput("analysis", "must be an object with plan, cost, tokens or warnings");
  }
  checkOptions(value as Analysis, KNOWN, "analysis");
  const { plan = null, cost, currency, tokens, warnings = [] } = value as Analysis;
  if (cost !== undefined && tokens !== undefined) {
    throw new InvalidInput("analysis.tokens", "is instead of cost, not beside it");
  }
  if (cost !== undefined && !/^[A-Z]{3}$/.test(currency ?? "")) {
    throw new InvalidInput("analysis.currency", "must be three capital letters, like USD");
  }
  const money = cost === undefined ? null : { amount: cost, currency };
  return encode({ plan, cost: tokens === undefined ? money : { tokens }, warnings }, "analysis");
}
