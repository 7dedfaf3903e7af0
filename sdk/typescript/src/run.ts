/** One attempt of this worker, from its assignment to its result. */

import { setMaxListeners } from "node:events";

import { type Claim, type Key, keyOf } from "./claim.js";
import { type StopReason, Stopped, Suspended } from "./errors.js";
import type { Definition } from "./handlers.js";
import type { Assignment } from "./protocol.js";

export class Run {
  readonly key: Key;
  readonly claim: Claim;
  /** Analyze the job instead of running it. */
  readonly isAnalysis: boolean;
  stopReason: StopReason | undefined;
  /** Whether a result was passed on, or none may be; later writes are ignored. */
  hasEnded = false;
  hasReports = false;
  /** Thrown by the wait that ends the attempt. */
  suspension: Suspended | undefined;
  lines = 0;
  /** Limits held for calls, as confirmed by the server. */
  readonly limits = new Map<string, number>();
  /** Cancel its timers. */
  stopTimeout: () => void = () => {};
  stopGrace: () => void = () => {};

  readonly #controller = new AbortController();
  /** When the handler was called. */
  #began: number | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly assignment: Assignment,
    readonly definition: Definition | undefined,
  ) {
    this.claim = { jobId: assignment.jobId, attempt: assignment.attempt };
    this.key = keyOf(this.claim);
    this.isAnalysis = assignment.isAnalysis;
    // A handler may have many open calls that listen to it.
    setMaxListeners(0, this.signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ranMs(): number {
    return this.#began === undefined ? 0 : Math.round(performance.now() - this.#began);
  }

  begin(): void {
    this.#began = performance.now();
  }

  abort(reason: StopReason): void {
    this.stopReason = reason;
    this.#controller.abort(new Stopped(reason));
  }

  /** Ends the attempt with a wait: later calls of the context throw it again. */
  suspend(wait: string): Suspended {
    this.suspension ??= new Suspended(wait);
    return this.suspension;
  }

  /** Runs limit calls one at a time, because each names the total number of holds. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine.catch(() => {});
    return mine;
  }
}
