/** Turns the end of a handler into the result of its attempt. */

import {
  Cancel,
  InvalidInput,
  InvalidResult,
  NondeterministicHandler,
  PublicError,
  Retry,
  Snooze,
  SubJobsFailed,
  WaitTimeout,
} from "./errors.js";
import type { Analysis } from "./handlers.js";
import { encode, safeText } from "./json.js";
import { checkOptions, type Names } from "./options.js";
import type { Result } from "./protocol.js";
import type { Run } from "./run.js";

// The next attempt would end alike.
const FINAL = [InvalidInput, NondeterministicHandler, SubJobsFailed, WaitTimeout];
const LONGEST_MESSAGE = 4000;
const LONGEST_TRACEBACK = 16_000;
const LONGEST_DELAY_MS = 100 * 366 * 86_400_000;

/** The result after a return; undefined if nothing may be written any more. */
export function returned(run: Run, value: unknown): Result | undefined {
  if (run.stopReason === "timeout" || run.stopReason === "fenced") return stopped(run);
  if (run.suspension !== undefined) return waiting(run);
  try {
    const result = InvalidResult.from(() =>
      run.isAnalysis ? analysis(value) : encode(value, "result"),
    );
    return { claim: run.claim, ranMs: run.ranMs, finish: { result } };
  } catch (error) {
    return failed(run, error);
  }
}

/** The result after a throw. */
export function threw(run: Run, error: unknown): Result | undefined {
  const isOwn = run.stopReason === undefined;
  if (!isOwn && (run.stopReason !== "cancel" || isAbort(run, error))) return stopped(run);
  // Also if the handler caught the suspension and threw another error: its wait is stored.
  return run.suspension === undefined ? failed(run, error) : waiting(run);
}

function waiting({ claim, ranMs, suspension, stopReason }: Run): Result {
  if (stopReason === "cancel") return { claim, ranMs, cancel: { reason: "" } };
  return { claim, ranMs, wait: { name: suspension?.wait ?? "" } };
}

/** The result of a handler that was asked to stop, whether or not it did. */
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

/** The result for a payload that cannot be read; a retry would not help. */
export function unreadable(run: Run, error: unknown): Result {
  const message = safeText(textOf(error), LONGEST_MESSAGE);
  const fail = { error: { type: "InvalidInput", message, isPublic: true }, isFinal: true };
  return { claim: run.claim, ranMs: run.ranMs, fail };
}

/** The failure to send instead of a result that the server refused. */
export function refused(result: Result, reason: string): Result {
  const message = safeText(`the server refused the result: ${reason}`, LONGEST_MESSAGE);
  const { claim = null, ranMs = 0 } = result;
  // The handler has succeeded: it must not run again.
  const fail = { error: { type: "InvalidResult", message, isPublic: true }, isFinal: true };
  return { claim, ranMs, fail };
}

export function failed(run: Run, error: unknown): Result {
  const { claim, ranMs } = run;
  if (error instanceof Snooze) {
    const delayMs = delay(error.delayMs);
    if (delayMs !== undefined) return { claim, ranMs, snooze: { delayMs } };
    return failed(run, new InvalidInput("Snooze", "must have a number of milliseconds"));
  }
  if (error instanceof Cancel) {
    const reason = safeText(String(error.reason), LONGEST_MESSAGE);
    return { claim, ranMs, cancel: { reason } };
  }
  const fail = { error: described(error), isFinal: FINAL.some((kind) => error instanceof kind) };
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

/** An error as stored: name, message and stack. */
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
    return "its text cannot be read";
  }
}

/** Whether the error comes from a call that the signal aborted. */
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
    throw new InvalidInput("analysis.tokens", "must not be set together with cost");
  }
  if (cost !== undefined && !/^[A-Z]{3}$/.test(currency ?? "")) {
    throw new InvalidInput("analysis.currency", "must be three capital letters, like USD");
  }
  const money = cost === undefined ? null : { amount: cost, currency };
  return encode({ plan, cost: tokens === undefined ? money : { tokens }, warnings }, "analysis");
}
