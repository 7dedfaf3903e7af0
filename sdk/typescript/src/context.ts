/** The context of a handler: its job, progress, checkpoints, steps, limits and its stop signal. */

import { setImmediate as nextTurn } from "node:timers/promises";

import { pause } from "./backoff.js";
import { CallRetry, type RetryOptions } from "./call_retry.js";
import { InvalidInput, InvalidResult, StaleAttempt, Stopped } from "./errors.js";
import { decode, encode, safeText } from "./json.js";
import type { CallLimits } from "./limits.js";
import { checkOptions, type Names } from "./options.js";
import type { Report, Reporter } from "./reporter.js";
import type { Run } from "./run.js";
import type { WaitCalls } from "./wait_calls.js";
import { type EventOptions, type JobResult, type RunAllOptions, type SubJob, Waits } from "./waits.js";

const LARGEST = 1e100;
const LONGEST_STAGE = 256;
const LONGEST_MESSAGE = 1024;
const LONGEST_LINE = 8192;
const STEP_NAME_BYTES = 200;
const TRACKED = "_tracked";
const DEFAULT_MAX_RETRIES = 3;
const TURN_MS = 20;
// An empty report counts as progress; without it the server may take a job back after a minute.
const PROGRESS_MS = 15_000;

/** Log lines, stored with the attempt. */
export interface JobLog {
  debug(message: unknown): void;
  info(message: unknown): void;
  warning(message: unknown): void;
  error(message: unknown): void;
}

/** The progress of a handler, in units of its choice. */
export interface Progress {
  done?: number;
  total?: number;
  message?: string;
  stage?: string;
}

const KNOWN: Names<Progress> = { done: true, total: true, message: true, stage: true };

export class Context<P = unknown> {
  /** Aborted once the handler should stop; its reason is a Stopped error. */
  readonly signal: AbortSignal;
  readonly log: JobLog;
  readonly #run: Run;
  readonly #reporter: Reporter;
  readonly #limits: CallLimits;
  readonly #steps: Map<string, string>;
  readonly #used = new Set<string>();
  readonly #waits: Waits;
  #state: unknown;
  #tracked: Record<string, number> = {};

  constructor(
    run: Run,
    readonly payload: P,
    reporter: Reporter,
    limits: CallLimits,
    waits: WaitCalls,
  ) {
    this.#run = run;
    this.#waits = new Waits(run, waits, this.#used);
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

  /** The retry budget of the job: so many charged failures are followed by a retry. */
  get maxRetries(): number {
    const { maxRetries } = this.#run.assignment;
    return maxRetries ?? this.#run.definition?.options?.maxRetries ?? DEFAULT_MAX_RETRIES;
  }

  /** True if the retry budget is spent: a failure of this attempt fails the job. */
  get isLastAttempt(): boolean {
    return this.#run.assignment.retries >= this.maxRetries;
  }

  get tags(): readonly string[] {
    return this.#run.assignment.tags;
  }

  /** The submitter of the job; undefined if it is not known. */
  get createdBy(): string | undefined {
    return this.#run.assignment.createdBy || undefined;
  }

  /** The payload as JSON text, which keeps every digit of large numbers. */
  get payloadText(): string {
    return this.#run.assignment.payload;
  }

  /** The state that `save` stored last, in this attempt or an earlier one; null at first. */
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
    if (this.#run.suspension !== undefined) throw this.#run.suspension;
    if (this.#run.hasEnded) throw new StaleAttempt("the attempt is over");
  }

  /** Reports progress; stored within half a second. */
  progress(progress: Progress): void;
  progress(done: number, total?: number, message?: string): void;
  progress(first: number | Progress, total?: number, message?: string): void {
    this.check();
    if (typeof first === "object") checkOptions(first, KNOWN, "progress");
    const given = typeof first === "object" ? first : { done: first, total, message };
    const report: Report = {};
    if (given.done !== undefined) report.done = finite(given.done, "done");
    if (given.total !== undefined) report.total = finite(given.total, "total");
    if (given.message !== undefined)
      report.message = safeText(String(given.message), LONGEST_MESSAGE);
    if (typeof first === "object" && first.stage !== undefined) {
      report.stage = safeText(String(first.stage), LONGEST_STAGE);
    }
    this.#report(report);
  }

  /** Stores a checkpoint; once it resolves, later attempts will read it. */
  save(state: unknown): Promise<void> {
    return awaitedOrNot(this.#save(state));
  }

  /** Calls fn once per job and stores its result; later attempts read it without a call. */
  step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    return awaitedOrNot(this.#step(name, fn));
  }

  /** Waits for one of each limit, and calls fn while this attempt holds them. */
  limit<T>(names: string | readonly string[], fn: () => T | Promise<T>): Promise<T> {
    return awaitedOrNot(this.#limit(names, fn));
  }

  /**
   * Calls fn until it succeeds, with growing pauses or those that `Retry-After` requests. It spends no
   * retry of the job, and stops when the handler should stop.
   */
  retry<T>(fn: () => T | PromiseLike<T>, options: RetryOptions = {}): Promise<T> {
    return awaitedOrNot(this.#retry(fn, options));
  }

  /**
   * Runs jobs as sub-jobs of this one, and returns their results in order. The attempt ends here, and the
   * job waits without a worker until all have ended; then the handler runs again from the top.
   */
  runAll(name: string, jobs: readonly SubJob[], options?: { failures?: "throw" }): Promise<unknown[]>;
  runAll(name: string, jobs: readonly SubJob[], options: { failures: "return" }): Promise<JobResult[]>;
  runAll(name: string, jobs: readonly SubJob[], options: RunAllOptions = {}): Promise<unknown[]> {
    return awaitedOrNot(this.#checked(() => this.#waits.runAll(name, jobs, options)));
  }

  /**
   * Waits for an event, without a worker, and returns its payload: the first of this name and key that the
   * job has not taken, also one sent before.
   */
  waitEvent(event: string, options: EventOptions = {}): Promise<unknown> {
    return awaitedOrNot(this.#checked(() => this.#waits.event(event, options)));
  }

  /** Continues after so many milliseconds; the job waits meanwhile without a worker. */
  sleep(name: string, ms: number): Promise<void> {
    return awaitedOrNot(this.#checked(() => this.#waits.sleep(name, ms)));
  }

  /** Yields the results of the jobs that this one came after, in order. */
  async *results(): AsyncGenerator<JobResult, void> {
    for (let after = 0; ; ) {
      this.check();
      const page = await this.#waits.results(after);
      if (page.length === 0) return;
      after += page.length;
      yield* page;
    }
  }

  /**
   * Iterates over items; after each it reports progress, saves a checkpoint and checks for a stop. A
   * later attempt continues after the last stored item, so a crash may repeat the last few.
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
        // Let heartbeats and other work run, even if the loop body never waits.
        await nextTurn();
        turnedAt = performance.now();
      }
    }
    this.check();
  }

  async #checked<T>(call: () => Promise<T>): Promise<T> {
    this.check();
    return call();
  }

  async #step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    this.check();
    if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > STEP_NAME_BYTES) {
      throw new InvalidInput("step", `must be a name of 1 to ${STEP_NAME_BYTES} bytes`);
    }
    const field = `step ${JSON.stringify(name)}`;
    if (typeof fn !== "function") {
      throw new InvalidInput(field, "must be a function: write ctx.step(name, () => …)");
    }
    if (this.#used.has(name)) {
      throw new InvalidInput(field, "already ran in this attempt: names are unique within a job");
    }
    this.#used.add(name);
    try {
      let text = this.#steps.get(name);
      if (text === undefined) {
        const began = performance.now();
        const value = await fn();
        const result = InvalidResult.from(() => encode(value, field));
        const tookMs = Math.round(performance.now() - began);
        this.#checkOpen();
        this.#run.hasReports = true;
        text = await this.#reporter.keep(this.#run.claim, { name, result, tookMs });
        this.#steps.set(name, text);
      }
      this.check();
      // Decoded, so that it is the same as in a later attempt.
      return decode(text, field) as T;
    } catch (error) {
      this.#used.delete(name);
      throw error;
    }
  }

  async #retry<T>(fn: () => T | PromiseLike<T>, options: RetryOptions): Promise<T> {
    const retry = new CallRetry(options);
    for (let n = 1; ; n += 1) {
      this.check();
      try {
        return await fn();
      } catch (error) {
        this.check();
        const waitMs = retry.waitMs(error, n);
        if (waitMs === undefined) throw error;
        const kind = error instanceof Error ? error.name : typeof error;
        const next = `next in ${(waitMs / 1000).toFixed(1)} s`;
        this.log.warning(`try ${n} of ${retry.tries} failed with ${kind}; ${next}`);
        await this.#pause(waitMs);
      }
    }
  }

  /** Waits while reporting progress; throws once the handler should stop. */
  async #pause(ms: number): Promise<void> {
    const until = performance.now() + ms;
    for (let left = ms; left > 0; left = until - performance.now()) {
      this.#report({});
      await pause(Math.min(left, PROGRESS_MS), this.signal);
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

  /** Splits the stored checkpoint into the handler's state and the positions of `track`. */
  #remember(checkpoint: unknown): void {
    this.#state = checkpoint;
    if (isObject(checkpoint) && isObject(checkpoint[TRACKED])) {
      const { [TRACKED]: tracked, ...rest } = checkpoint;
      this.#tracked = { ...(tracked as Record<string, number>) };
      this.#state = Object.keys(rest).length > 0 ? rest : null;
    }
  }

  #checkpointText(): string {
    let state = this.#state;
    if (Object.keys(this.#tracked).length > 0) {
      if (state !== null && !isObject(state)) {
        throw new InvalidResult("checkpoint", "must be an object in a handler that uses ctx.track");
      }
      state = { ...state, [TRACKED]: this.#tracked };
    }
    return InvalidResult.from(() => encode(state, "checkpoint"));
  }
}

/** Keeps an unawaited rejection from ending the process; the handler's signal reports the stop. */
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
