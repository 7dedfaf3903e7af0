/**
 * The errors that handlers throw to end an attempt, and those that Laneway throws.
 *
 *     Retry            retry the job while its retry budget lasts
 *     Snooze           run the job again later, without spending a retry
 *     Cancel           cancel the job
 *     PublicError      fail with a message for all who may see the job
 *     InvalidInput     an input breaks a rule; names the field and the rule
 *     InvalidResult    a result, step result or checkpoint cannot be stored
 *     SubJobsFailed    sub-jobs of `ctx.runAll` did not complete
 *     WaitTimeout      an event did not come in time
 *     NondeterministicHandler   a handler asked for other waits than in its earlier run
 *     Suspended        ends an attempt whose job waits
 *     Stopped          the handler should stop; thrown by its context, the reason of its signal
 *     StaleAttempt     another attempt runs, or the job has ended; writes are refused
 *     ServerError      the server refuses the worker, or cannot be reached
 */

import { checkOptions } from "./options.js";
import type { JobResult } from "./waits.js";

export { InvalidInput, InvalidResult } from "./invalid_input.js";

/** Why a handler should stop. */
export type StopReason = "cancel" | "timeout" | "fenced" | "shutdown";

/** The attempt failed: retry it after `afterMs`, or as the job type declares. */
export class Retry extends Error {
  override name = "Retry";
  readonly afterMs: number | undefined;

  constructor(message = "retry requested", options: { afterMs?: number; cause?: unknown } = {}) {
    checkOptions(options, { afterMs: true, cause: true }, "options of Retry");
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.afterMs = options.afterMs;
  }
}

/** Run the job again after `delayMs`, without spending a retry. */
export class Snooze extends Error {
  override name = "Snooze";

  constructor(readonly delayMs: number) {
    super(`snoozed for ${delayMs} ms`);
  }
}

/** End the job as cancelled. */
export class Cancel extends Error {
  override name = "Cancel";

  constructor(readonly reason = "cancelled by its handler") {
    super(reason);
  }
}

/**
 * The attempt failed, with a message for all who may see the job. Messages of other errors, and all
 * stacks, need jobs:debug.
 */
export class PublicError extends Error {
  override name = "PublicError";
}

/** Thrown by `ctx.runAll`, `waitEvent` and `sleep` to end the attempt: the job waits. */
export class Suspended extends Error {
  override name = "Suspended";

  /** `wait`: the name of the wait. */
  constructor(readonly wait: string) {
    super(`waits for ${JSON.stringify(wait)}`);
  }
}

/** Sub-jobs did not complete. A handler that does not catch it fails its job without a retry. */
export class SubJobsFailed extends Error {
  override name = "SubJobsFailed";

  constructor(
    message: string,
    readonly failed: readonly JobResult[] = [],
  ) {
    super(message);
  }
}

/** An event did not come in time. A handler that does not catch it fails its job without a retry. */
export class WaitTimeout extends Error {
  override name = "WaitTimeout";
}

/** A handler asked for other waits than in its earlier run; its job fails without a retry. */
export class NondeterministicHandler extends Error {
  override name = "NondeterministicHandler";
}

/** The handler should stop. */
export class Stopped extends Error {
  override name = "Stopped";

  constructor(readonly reason: StopReason) {
    super(`the handler should stop: ${reason}`);
  }
}

/** The attempt is no longer the one running. */
export class StaleAttempt extends Error {
  override name = "StaleAttempt";
}

/** A server's error, or no answer; `code` is the name of the gRPC status. */
export class ServerError extends Error {
  override name = "ServerError";

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  /** The call is invalid: repeating it would fail again. */
  get isRefusal(): boolean {
    const isTooLarge =
      this.code === "RESOURCE_EXHAUSTED" && this.message.includes("larger than max");
    return isTooLarge || REFUSALS.has(this.code);
  }

  /** There is no answer: the server or the network is gone or slow. */
  get isLoss(): boolean {
    // The error of grpc-js when the server has closed the connection.
    const isClosed =
      this.code === "RESOURCE_EXHAUSTED" && this.message.startsWith("Bandwidth exhausted");
    return isClosed || this.code === "UNAVAILABLE" || this.code === "DEADLINE_EXCEEDED";
  }

  /** The token is not valid, or lacks a permission. */
  get isDenial(): boolean {
    return this.code === "UNAUTHENTICATED" || this.code === "PERMISSION_DENIED";
  }
}

export function isRefusal(error: unknown): error is ServerError {
  return error instanceof ServerError && error.isRefusal;
}

const REFUSALS = new Set(["INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "NOT_FOUND"]);
