/** What a handler holds: its job, and the ways to report, to remember, and to notice the end. */

import { setImmediate as aTurn } from "node:timers/promises";

import { pause } from "./backoff.js";
import { Patience, type RetryOptions } from "./call_retry.js";
import { InvalidInput, StaleAttempt, Stopped } from "./errors.js";
import { decode, encode, safeText } from "./json.js";
import type { CallLimits } from "./limits.js";
import { checkOptions, type Names } from "./options.js";
import type { Report, Reporter } from "./reporter.js";
import type { Run } from "./run.js";

const LARGEST = 1e100;
const LONGEST_STAGE = 256;
const LONGEST_MESSAGE = 1024;
const LONGEST_LINE = 8192;
const STEP_NAME_BYTES = 200;
const TRACKED = "_tracked";
const TURN_MS = 20;
// An empty report counts as progress, without which a job may be taken back after a minute.
const MOVE_MS = 15_000;

/** Log lines, kept with the attempt. */
export interface JobLog {
  debug(message: unknown): void;
  info(message: unknown): void;
  warning(message: unknown): void;
  error(message: unknown): void;
}

/** How far the work is, in its own units. */
export interface Progress {
  done?: number;
  total?: number;
  message?: string;
  stage?: string;
}

const KNOWN: Names<Progress> = { done: true, total: true, message: true, stage: true };

export class Context<P = unknown> {
  /** Aborted once the handler should stop; its reason is a Stopped that says why. */
  readonly signal: AbortSignal;
  readonly log: JobLog;
  readonly #run: Run;
  readonly #reporter: Reporter;
  readonly #limits: CallLimits;
  readonly #steps: Map<string, string>;
  readonly #used = new Set<string>();
  #state: unknown;
  #tracked: Record<string, number> = {};

  constructor(
    run: Run,
    readonly payload: P,
    reporter: Reporter,
    limits: CallLimits,
  ) {
    this.#run = run;
    this.#reporter = reporter;
    this.#limits = limits;
    this.signal = run.signal;
    this.#steps = new Map(run.assignment.steps.map((step) => [step.name, step.result]));
    const { checkpoint } = run.assignment;
    this.#remember(checkpoint === undefined ? null : decode(checkpoint, "checkpoint"));
    this.log = {
      debug: (message) => this.#line("debug", message),
      info: (message) => this.#line("info", message),
      warning: (message) => this.#line("warning", message),
      error: (message) => this.#line("error", message),
    };
  }

  get jobId(): string {
    return this.#run.claim.jobId;
  }

  get jobType(): string {
    return this.#run.assignment.jobType;
  }

  get lane(): string {
    return this.#run.assignment.lane;
  }

  /** The number of this claim: 1 for the first start. */
  get attempt(): number {
    return this.#run.claim.attempt;
  }

  /** The payload as JSON text, in which no digit of a large number is lost. */
  get payloadText(): string {
    return this.#run.assignment.payload;
  }

  /** What `save` stored last, in this attempt or an earlier one; null at first. */
  get checkpoint(): unknown {
    return this.#state;
  }

  /** W3C trace context of the submit; empty if there is none. */
  get traceparent(): string {
    return this.#run.assignment.traceparent;
  }

  /** True once the handler should stop: cancelled, late, superseded or shutting down. */
  get cancelled(): boolean {
    return this.#run.stopReason !== undefined;
  }

  /** Throws if the handler should stop; every call below does so too. */
  check(): void {
    if (this.#run.stopReason !== undefined) throw new Stopped(this.#run.stopReason);
    if (this.#run.hasEnded) throw new StaleAttempt("the attempt is over");
  }

  /** Says how far the work is; stored within half a second. */
  progress(progress: Progress): void;
  progress(done: number, total?: number, message?: string): void;
  progress(said: number | Progress, total?: number, message?: string): void {
    this.check();
    if (typeof said === "object") checkOptions(said, KNOWN, "progress");
    const given = typeof said === "object" ? said : { done: said, total, message };
    const report: Report = {};
    if (given.done !== undefined) report.done = finite(given.done, "done");
    if (given.total !== undefined) report.total = finite(given.total, "total");
    if (given.message !== undefined)
      report.message = safeText(String(given.message), LONGEST_MESSAGE);
    if (typeof said === "object" && said.stage !== undefined) {
      report.stage = safeText(String(said.stage), LONGEST_STAGE);
    }
    this.#report(report);
  }

  /** Stores a checkpoint; once it resolves, the next attempt will see it. */
  save(state: unknown): Promise<void> {
    return awaitedOrNot(this.#save(state));
  }

  /** Calls fn once per job and remembers its result; later attempts get it without a call. */
  step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    return awaitedOrNot(this.#step(name, fn));
  }

  /** Calls fn while this attempt holds one of each limit named, waiting for its turn. */
  limit<T>(names: string | readonly string[], fn: () => T | Promise<T>): Promise<T> {
    return awaitedOrNot(this.#limit(names, fn));
  }

  /**
   * Calls fn until it succeeds, with a growing pause or the one that `Retry-After` asks for. It spends
   * no retry of the job and stops where the handler should stop.
   */
  retry<T>(fn: () => T | PromiseLike<T>, options: RetryOptions = {}): Promise<T> {
    return awaitedOrNot(this.#retry(fn, options));
  }

  /**
   * Goes through items with progress, a checkpoint and a place to stop at each of them. A later
   * attempt goes on behind the last item stored, so a crash may repeat the last few.
   */
  async *track<T>(items: Iterable<T> | AsyncIterable<T>, name = "items"): AsyncGenerator<T, void> {
    const total = Array.isArray(items) ? items.length : undefined;
    const reached = this.#tracked[name] ?? 0;
    let place = 0;
    let turnedAt = performance.now();
    for await (const item of items) {
      place += 1;
      if (place <= reached) continue;
      this.check();
      yield item;
      this.#tracked[name] = place;
      const report: Report = { done: place, checkpoint: this.#checkpointText() };
      if (total !== undefined) report.total = total;
      this.#report(report);
      if (performance.now() - turnedAt > TURN_MS) {
        // Heartbeats and others have their turn, whatever is done with the items.
        await aTurn();
        turnedAt = performance.now();
      }
    }
    this.check();
  }

  async #step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    this.check();
    if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > STEP_NAME_BYTES) {
      throw new InvalidInput("step", `must be a name of 1 to ${STEP_NAME_BYTES} bytes`);
    }
    const field = `step ${JSON.stringify(name)}`;
    if (this.#used.has(name)) {
      throw new InvalidInput(field, "ran already in this attempt: names are unique within a job");
    }
    this.#used.add(name);
    try {
      let text = this.#steps.get(name);
      if (text === undefined) {
        const began = performance.now();
        const result = encode(await fn(), field);
        const tookMs = Math.round(performance.now() - began);
        this.#checkOpen();
        this.#run.hasReports = true;
        text = await this.#reporter.keep(this.#run.claim, { name, result, tookMs });
        this.#steps.set(name, text);
      }
      this.check();
      // As a later attempt will read it.
      return decode(text, field) as T;
    } catch (error) {
      this.#used.delete(name);
      throw error;
    }
  }

  async #retry<T>(fn: () => T | PromiseLike<T>, options: RetryOptions): Promise<T> {
    const patience = new Patience(options);
    for (let n = 1; ; n += 1) {
      this.check();
      try {
        return await fn();
      } catch (error) {
        this.check();
        const waitMs = patience.waitMs(error, n);
        if (waitMs === undefined) throw error;
        const kind = error instanceof Error ? error.name : typeof error;
        const next = `next in ${(waitMs / 1000).toFixed(1)} s`;
        this.log.warning(`try ${n} of ${patience.tries} failed with ${kind}; ${next}`);
        await this.#pause(waitMs);
      }
    }
  }

  /** Waits so long, moving all the while; throws once the handler should stop. */
  async #pause(ms: number): Promise<void> {
    const until = performance.now() + ms;
    for (let left = ms; left > 0; left = until - performance.now()) {
      this.#report({});
      await pause(Math.min(left, MOVE_MS), this.signal);
      this.check();
    }
  }

  async #limit<T>(names: string | readonly string[], fn: () => T | Promise<T>): Promise<T> {
    this.check();
    return this.#limits.hold(this.#run, names, fn);
  }

  async #save(state: unknown): Promise<void> {
    this.check();
    const before = this.#state;
    this.#state = state ?? null;
    try {
      this.#report({ checkpoint: this.#checkpointText() });
    } catch (error) {
      this.#state = before;
      throw error;
    }
    await this.#reporter.flush(this.#run.claim);
  }

  #report(report: Report): void {
    if (this.#run.hasEnded) return;
    this.#run.hasReports = true;
    this.#reporter.report(this.#run.claim, report);
  }

  #line(level: string, message: unknown): void {
    if (this.#run.hasEnded) return;
    const text = message instanceof Error ? (message.stack ?? message.message) : String(message);
    this.#run.hasReports = true;
    this.#run.lines += 1;
    this.#reporter.line(this.#run.claim, this.#run.lines, level, safeText(text, LONGEST_LINE));
  }

  #checkOpen(): void {
    if (this.#run.hasEnded) throw new StaleAttempt("the attempt is over");
  }

  /** The checkpoint as the handler sees it, and the places its tracks have reached beside it. */
  #remember(checkpoint: unknown): void {
    this.#state = checkpoint;
    if (isObject(checkpoint) && isObject(checkpoint[TRACKED])) {
      const { [TRACKED]: tracked, ...rest } = checkpoint;
      this.#tracked = { ...(tracked as Record<string, number>) };
      this.#state = Object.keys(rest).length > 0 ? rest : null;
    }
  }

  #checkpointText(): string {
    if (Object.keys(this.#tracked).length === 0) return encode(this.#state, "checkpoint");
    if (this.#state !== null && !isObject(this.#state)) {
      throw new InvalidInput("checkpoint", "must be an object in a handler that uses ctx.track");
    }
    return encode({ ...this.#state, [TRACKED]: this.#tracked }, "checkpoint");
  }
}

/** A handler that does not wait for it learns by its signal: the process must not end of it. */
function awaitedOrNot<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

function finite(value: number, field: string): number {
  if (typeof value !== "number" || !(Math.abs(value) <= LARGEST)) {
    throw new InvalidInput(field, `must be a finite number, at most ${LARGEST}`);
  }
  return value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
