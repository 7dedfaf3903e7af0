/** Calls handlers, stops them, and passes each result on exactly once. */

import { after } from "./backoff.js";
import type { Claim, Key, StopSignal } from "./claim.js";
import type { Completer } from "./completer.js";
import { Context } from "./context.js";
import type { StopReason } from "./errors.js";
import type { Handlers } from "./handlers.js";
import type { Heartbeat } from "./heartbeat.js";
import { decode } from "./json.js";
import { JobsAhead } from "./jobs_ahead.js";
import type { CallLimits } from "./limits.js";
import { around, type Middleware } from "./middleware.js";
import * as outcome from "./outcome.js";
import type { Assignment, Result } from "./protocol.js";
import type { Reporter } from "./reporter.js";
import { Run } from "./run.js";
import type { WaitCalls } from "./wait_calls.js";

// The time for a fenced handler to stop before it counts as abandoned.
const FENCED_GRACE_MS = 1000;
// By then a lease that lapsed by our clock has also lapsed by the database's.
const LOST_MS = 15_000;

interface Parts {
  handlers: Handlers;
  middleware: readonly Middleware[];
  heartbeat: Heartbeat;
  reporter: Reporter;
  completer: Completer;
  limits: CallLimits;
  waits: WaitCalls;
}

export class Executor {
  /** Attempts whose handlers run and may still write. */
  readonly #active = new Map<Key, Run>();
  /** Active attempts, and those whose results are not settled yet. */
  readonly #held = new Map<Key, Claim>();
  /** Handlers that did not stop in time: they still take room. */
  readonly #abandoned = new Set<Run>();
  /** Attempts that lapsed by our clock, and when; no server has confirmed it yet. */
  readonly #lost = new Map<Claim, number>();
  #onQuiet: (() => void)[] = [];
  readonly #ahead: JobsAhead;

  constructor(
    private readonly parts: Parts,
    private readonly maxInFlight: number,
    private readonly cancelGraceMs: number,
    private readonly onRoom: (isMore: boolean) => void,
  ) {
    this.#ahead = new JobsAhead(
      () => this.maxInFlight - this.#abandoned.size,
      (run) => this.#begin(run),
      (run) => this.stop(run, "shutdown"),
    );
  }

  /** Held attempts, with lost ones: the server must not release those uncharged. */
  get holds(): Claim[] {
    this.#forgetLost();
    return [...this.#held.values(), ...this.#lost.keys()];
  }

  get abandoned(): number {
    return this.#abandoned.size;
  }

  get isQuiet(): boolean {
    return this.#active.size === 0;
  }

  /** Resolves when no handler runs. */
  quiet(): Promise<void> {
    if (this.isQuiet) return Promise.resolve();
    return new Promise((resolve) => this.#onQuiet.push(resolve));
  }

  start(assignment: Assignment): void {
    const run = new Run(assignment, this.parts.handlers.get(assignment.jobType));
    if (this.#held.has(run.key)) return;
    this.#held.set(run.key, run.claim);
    this.#active.set(run.key, run);
    this.parts.heartbeat.hold(run.claim, assignment.leaseMs, assignment.leaseLeftMs);
    if (assignment.isAhead) this.#ahead.put(run);
    else this.#begin(run);
  }

  #begin(run: Run): void {
    this.#ahead.began(run);
    void this.#call(run);
  }

  /** By lane: the most jobs that may wait here for room. */
  allowedAhead(unsettled: number): Record<string, number> {
    return this.#ahead.allowed(unsettled);
  }

  /** Releases the jobs that wait for room. */
  returnAhead(): void {
    this.#ahead.returnAll();
  }

  /** Stops an attempt for a reason from a server or our clock. */
  onStopSignal(key: Key, signal: StopSignal): void {
    const run = this.#active.get(key);
    if (run && signal === "lost") {
      this.#forgetLost();
      this.#lost.set(run.claim, performance.now());
    }
    if (run) this.stop(run, signal === "cancel_requested" ? "cancel" : "fenced");
  }

  stopAll(reason: StopReason): void {
    for (const run of [...this.#active.values()]) this.stop(run, reason);
  }

  abandonAll(): void {
    for (const run of [...this.#active.values()]) this.#abandon(run);
  }

  /** Stops a handler; abandons it if it does not stop within the grace. */
  stop(run: Run, reason: StopReason): void {
    if (run.hasEnded || (run.stopReason !== undefined && reason !== "fenced")) return;
    run.abort(reason);
    run.stopGrace();
    if (this.#ahead.drop(run)) {
      // Its handler was not called.
      this.#active.delete(run.key);
      this.#conclude(run, outcome.stopped(run));
      this.#resolveIfQuiet();
      return;
    }
    if (reason === "fenced") {
      this.#conclude(run, undefined);
      run.stopGrace = after(FENCED_GRACE_MS, () => this.#abandon(run));
    } else {
      run.stopGrace = after(this.cancelGraceMs, () => this.#abandon(run));
    }
  }

  async #call(run: Run): Promise<void> {
    const result = await this.#result(run);
    run.stopTimeout();
    if (!run.hasEnded) {
      // Store earlier reports before the result: afterwards the server would refuse them.
      if (run.hasReports) await this.parts.reporter.flush(run.claim).catch(() => {});
      if (!run.hasEnded) this.#conclude(run, result);
    }
    run.stopGrace();
    this.#active.delete(run.key);
    this.#ahead.ended(run);
    if (this.#abandoned.delete(run)) this.onRoom(true);
    this.#resolveIfQuiet();
  }

  /** The result of the handler; never throws. */
  async #result(run: Run): Promise<Result | undefined> {
    const { assignment, definition } = run;
    const call = run.isAnalysis ? definition?.options?.analyze : definition?.handler;
    if (call === undefined) {
      return outcome.failed(run, new Error(`this worker has no handler for ${assignment.jobType}`));
    }
    let context: Context;
    try {
      const raw = decode(assignment.payload, "payload");
      const parse = definition?.options?.parse;
      const { reporter, limits, waits } = this.parts;
      const payload: unknown = parse ? await parse(raw) : raw;
      context = new Context(run, payload, reporter, limits, waits);
    } catch (error) {
      return outcome.unreadable(run, error);
    }
    run.begin();
    if (assignment.timeoutMs > 0) {
      run.stopTimeout = after(assignment.timeoutMs, () => this.stop(run, "timeout"));
    }
    try {
      // Analyses run without middleware.
      const wrapped = run.isAnalysis ? call : around(this.parts.middleware, call);
      return outcome.returned(run, await wrapped(context, context.payload));
    } catch (error) {
      try {
        return outcome.threw(run, error);
      } catch {
        // An error whose properties throw must not end the process.
        return outcome.failed(run, new Error("the handler's error cannot be read"));
      }
    }
  }

  /** Ends the job after the grace, although its handler still runs. */
  #abandon(run: Run): void {
    if (this.#active.get(run.key) !== run) return;
    this.#abandoned.add(run);
    this.#active.delete(run.key);
    this.#ahead.ended(run);
    // Before its result is sent: otherwise the server would count room that is still in use.
    this.onRoom(false);
    if (!run.hasEnded) this.#conclude(run, outcome.stopped(run));
    this.#resolveIfQuiet();
  }

  #conclude(run: Run, result: Result | undefined): void {
    run.hasEnded = true;
    run.stopTimeout();
    this.parts.reporter.drop(run.key);
    if (result === undefined) {
      this.#release(run.key);
    } else {
      this.parts.completer.add(result, () => this.#release(run.key));
    }
  }

  #release(key: Key): void {
    this.#held.delete(key);
    this.parts.heartbeat.forget(key);
  }

  #forgetLost(): void {
    const since = performance.now() - LOST_MS;
    for (const [claim, at] of this.#lost) if (at < since) this.#lost.delete(claim);
  }

  #resolveIfQuiet(): void {
    if (this.isQuiet) for (const resolve of this.#onQuiet.splice(0)) resolve();
  }
}
