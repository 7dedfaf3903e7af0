/** Calls handlers, stops them when told, and passes each result on exactly once. */

import { after } from "./backoff.js";
import type { Claim, Key, News } from "./claim.js";
import type { Completer } from "./completer.js";
import { Context } from "./context.js";
import type { StopReason } from "./errors.js";
import type { Handlers } from "./handlers.js";
import type { Heartbeat } from "./heartbeat.js";
import { decode } from "./json.js";
import type { CallLimits } from "./limits.js";
import * as outcome from "./outcome.js";
import type { Assignment, Result } from "./protocol.js";
import type { Reporter } from "./reporter.js";
import { Run } from "./run.js";

// A handler that is fenced is given so long before it counts as left behind.
const FENCED_GRACE_MS = 1000;
// By then what is over by our clock is over by the database's too.
const LOST_MS = 15_000;

interface Parts {
  handlers: Handlers;
  heartbeat: Heartbeat;
  reporter: Reporter;
  completer: Completer;
  limits: CallLimits;
}

export class Executor {
  /** Attempts whose handlers run, as long as they may say something. */
  readonly #active = new Map<Key, Run>();
  /** Attempts whose results are not settled yet, too. */
  readonly #inHand = new Map<Key, Claim>();
  /** Handlers that did not stop when told to: they go on taking room. */
  readonly #leftBehind = new Set<Run>();
  /** Attempts lost by our own clock, and when: no server has said yet that they are over. */
  readonly #lost = new Map<Claim, number>();
  #onQuiet: (() => void)[] = [];

  constructor(
    private readonly parts: Parts,
    private readonly cancelGraceMs: number,
    private readonly onRoom: (isMore: boolean) => void,
  ) {}

  /** What is lost is for the watchdog, not to be given back as if it had never come. */
  get holds(): Claim[] {
    this.#forgetLost();
    return [...this.#inHand.values(), ...this.#lost.keys()];
  }

  get leftBehind(): number {
    return this.#leftBehind.size;
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
    if (this.#inHand.has(run.key)) return;
    this.#inHand.set(run.key, run.claim);
    this.#active.set(run.key, run);
    this.parts.heartbeat.hold(run.claim, assignment.leaseMs, assignment.leaseLeftMs);
    void this.#call(run);
  }

  /** What a server or our clock says of an attempt. */
  hear(key: Key, news: News): void {
    const run = this.#active.get(key);
    if (run && news === "lost") {
      this.#forgetLost();
      this.#lost.set(run.claim, performance.now());
    }
    if (run) this.stop(run, news === "cancel_requested" ? "cancel" : "fenced");
  }

  stopAll(reason: StopReason): void {
    for (const run of [...this.#active.values()]) this.stop(run, reason);
  }

  leaveAllBehind(): void {
    for (const run of [...this.#active.values()]) this.#leaveBehind(run);
  }

  /** Tells a handler to stop; one that has not within the grace is left behind. */
  stop(run: Run, reason: StopReason): void {
    if (run.hasEnded || (run.stopReason !== undefined && reason !== "fenced")) return;
    run.abort(reason);
    run.stopGrace();
    if (reason === "fenced") {
      this.#conclude(run, undefined);
      run.stopGrace = after(FENCED_GRACE_MS, () => this.#leaveBehind(run));
    } else {
      run.stopGrace = after(this.cancelGraceMs, () => this.#leaveBehind(run));
    }
  }

  async #call(run: Run): Promise<void> {
    const result = await this.#result(run);
    run.stopTimeout();
    if (!run.hasEnded) {
      // What was reported before the end must be stored before it: later it would be refused.
      if (run.hasReports) await this.parts.reporter.flush(run.claim).catch(() => {});
      if (!run.hasEnded) this.#conclude(run, result);
    }
    run.stopGrace();
    this.#active.delete(run.key);
    if (this.#leftBehind.delete(run)) this.onRoom(true);
    this.#tellIfQuiet();
  }

  /** How the handler ended; never throws. */
  async #result(run: Run): Promise<Result | undefined> {
    const { assignment, definition } = run;
    const call = run.isAnalysis ? definition?.options?.analyze : definition?.handler;
    if (call === undefined) {
      return outcome.failed(run, new Error(`no handler for ${assignment.jobType} here`));
    }
    let context: Context;
    try {
      const raw = decode(assignment.payload, "payload");
      const parse = definition?.options?.parse;
      const payload: unknown = parse ? await parse(raw) : raw;
      context = new Context(run, payload, this.parts.reporter, this.parts.limits);
    } catch (error) {
      return outcome.unreadable(run, error);
    }
    run.begin();
    if (assignment.timeoutMs > 0) {
      run.stopTimeout = after(assignment.timeoutMs, () => this.stop(run, "timeout"));
    }
    try {
      return outcome.returned(run, await call(context, context.payload));
    } catch (error) {
      try {
        return outcome.threw(run, error);
      } catch {
        // An error whose own properties throw ends its job, not the process.
        return outcome.failed(run, new Error("what the handler threw cannot be read"));
      }
    }
  }

  /** The grace is over: the job ends now, whatever its handler still does. */
  #leaveBehind(run: Run): void {
    if (this.#active.get(run.key) !== run) return;
    this.#leftBehind.add(run);
    this.#active.delete(run.key);
    // Before its result makes room at the server that is not there.
    this.onRoom(false);
    if (!run.hasEnded) this.#conclude(run, outcome.stopped(run));
    this.#tellIfQuiet();
  }

  #conclude(run: Run, result: Result | undefined): void {
    run.hasEnded = true;
    run.stopTimeout();
    this.parts.reporter.drop(run.key);
    if (result === undefined) {
      this.#letGo(run.key);
    } else {
      this.parts.completer.add(result, () => this.#letGo(run.key));
    }
  }

  #letGo(key: Key): void {
    this.#inHand.delete(key);
    this.parts.heartbeat.forget(key);
  }

  #forgetLost(): void {
    const since = performance.now() - LOST_MS;
    for (const [claim, at] of this.#lost) if (at < since) this.#lost.delete(claim);
  }

  #tellIfQuiet(): void {
    if (this.isQuiet) for (const resolve of this.#onQuiet.splice(0)) resolve();
  }
}
