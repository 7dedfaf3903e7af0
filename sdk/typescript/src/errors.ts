/**
 * What handlers throw to say how a job goes on, and what they are thrown.
 *
 *     Retry            again, while the retry budget lasts
 *     Snooze           again later, at no charge
 *     Cancel           the job is cancelled
 *     PublicError      the attempt failed; everybody who may see the job reads its message
 *     InvalidInput     what was given breaks a rule; names the field and the rule
 *     Stopped          the handler should stop: thrown by its context, the reason of its signal
 *     StaleAttempt     another attempt runs, or the job has ended: nothing this one says counts
 *     ServerError      the server refuses the worker, or cannot be reached
 */

import { checkOptions } from "./options.js";

export { InvalidInput } from "./invalid_input.js";

/** Why a handler should stop. */
export type StopReason = "cancel" | "timeout" | "fenced" | "shutdown";

/** The attempt failed: again after so long, or as the job type says. */
export class Retry extends Error {
  override name = "Retry";
  readonly afterMs: number | undefined;

  constructor(message = "to be tried again", options: { afterMs?: number; cause?: unknown } = {}) {
    checkOptions(options, { afterMs: true, cause: true }, "options of Retry");
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.afterMs = options.afterMs;
  }
}

/** Not now: again after so long, without a charge to the retry budget. */
export class Snooze extends Error {
  override name = "Snooze";

  constructor(readonly delayMs: number) {
    super(`snoozed for ${delayMs} ms`);
  }
}

/** There is nothing more to be done: the job ends as cancelled. */
export class Cancel extends Error {
  override name = "Cancel";

  constructor(readonly reason = "cancelled by its handler") {
    super(reason);
  }
}

/**
 * The attempt failed, with a message for everybody who may see the job. Messages of other errors need
 * jobs:debug; so does the stack with its cause.
 */
export class PublicError extends Error {
  override name = "PublicError";
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

/** What a server answered, or that none did; `code` is the name of the gRPC status. */
export class ServerError extends Error {
  override name = "ServerError";

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  /** The call itself is wrong: another try would be answered alike. */
  get isRefusal(): boolean {
    const isTooLarge =
      this.code === "RESOURCE_EXHAUSTED" && this.message.includes("larger than max");
    return isTooLarge || REFUSALS.has(this.code);
  }

  /** There is no answer: the server, or the way there, is gone or slow. */
  get isLoss(): boolean {
    // What grpc-js makes of a server that has given the connection up.
    const isGivenUp =
      this.code === "RESOURCE_EXHAUSTED" && this.message.startsWith("Bandwidth exhausted");
    return isGivenUp || this.code === "UNAVAILABLE" || this.code === "DEADLINE_EXCEEDED";
  }

  /** Whoever calls is unknown, or may not do this. */
  get isDenial(): boolean {
    return this.code === "UNAUTHENTICATED" || this.code === "PERMISSION_DENIED";
  }
}

export function isRefusal(error: unknown): error is ServerError {
  return error instanceof ServerError && error.isRefusal;
}

const REFUSALS = new Set(["INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "NOT_FOUND"]);
