/** A worker: connects to a server, receives jobs and runs their handlers. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { LONGEST_TIMER_MS, pause } from "./backoff.js";
import type { Key, StopSignal } from "./claim.js";
import { ThrottledWarnings, type Logger, stderr } from "./throttled_warnings.js";
import { Completer } from "./completer.js";
import { Connection, type Tls } from "./connection.js";
import { InvalidInput } from "./errors.js";
import { Executor } from "./executor.js";
import { type Handler, type HandlerOptions, Handlers } from "./handlers.js";
import { Heartbeat } from "./heartbeat.js";
import { AssignmentReceiver } from "./assignment_receiver.js";
import { checkMiddleware, type Middleware } from "./middleware.js";
import { LoopLag } from "./loop_lag.js";
import { CallLimits } from "./limits.js";
import { markStartupError } from "./startup_errors.js";
import { checkOptions, type Names } from "./options.js";
import type { StreamJobsRequest } from "./protocol.js";
import { Reporter } from "./reporter.js";
import { JobStream } from "./stream.js";
import { WaitCalls } from "./wait_calls.js";
import { type Token, tokenFromEnvironment } from "./token.js";

export interface WorkerOptions {
  /** host:port of a server, or several, which are tried in turn. */
  server: string | string[];
  /** A token, or a function that returns it; by default LANEWAY_TOKEN or LANEWAY_TOKEN_FILE. */
  token?: Token | undefined;
  /** A readable name; host and process by default. */
  name?: string;
  /** The most jobs at once; 100 by default. */
  maxInFlight?: number;
  /** Required except on loopback; true: use the system's certificate authorities. */
  tls?: boolean | Tls;
  /** The version of your code, shown with the worker. */
  version?: string;
  /** The time for a handler to stop before it is abandoned; 30 s by default. */
  cancelGraceMs?: number;
  /** The time for jobs to finish after a signal to `run`; 30 s by default. */
  graceMs?: number;
  /** The worker's logger; stderr by default. */
  logger?: Logger;
}

const KNOWN: Names<WorkerOptions> = {
  server: true,
  token: true,
  name: true,
  maxInFlight: true,
  tls: true,
  version: true,
  cancelGraceMs: true,
  graceMs: true,
  logger: true,
};

const GRACE_MS = 30_000;
const MOST_IN_FLIGHT = 10_000;
// Abandoned handlers that return within this time are reported together.
const ROOM_MS = 500;
// The longest time for the last calls of a stop.
const STOP_MS = 5000;

export class Worker {
  readonly id = randomUUID();
  readonly name: string;
  readonly #handlers = new Handlers();
  readonly #middleware: Middleware[] = [];
  readonly #maxInFlight: number;
  readonly #graceMs: number;
  readonly #version: string;
  readonly #log: Logger;
  readonly #connection: Connection;
  readonly #lag = new LoopLag();
  readonly #heartbeat: Heartbeat;
  readonly #reporter: Reporter;
  readonly #completer: Completer;
  readonly #executor: Executor;
  readonly #stream: JobStream;
  readonly #hurry = new AbortController();
  #isDraining = false;
  #roomTimer: NodeJS.Timeout | undefined;
  #state: "new" | "running" | "stopped" = "new";
  #hasFailed = false;
  #stopping: Promise<void> | undefined;
  #onStopped: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    try {
      checkOptions(options, KNOWN, "options of Worker");
      this.name = options.name ?? `${hostname()}:${process.pid}`;
      this.#maxInFlight = options.maxInFlight ?? 100;
      const isWhole = Number.isInteger(this.#maxInFlight);
      if (!isWhole || this.#maxInFlight < 1 || this.#maxInFlight > MOST_IN_FLIGHT) {
        throw new InvalidInput("maxInFlight", `must be a whole number from 1 to ${MOST_IN_FLIGHT}`);
      }
      this.#graceMs = checkGrace("graceMs", options.graceMs);
      this.#version = options.version ?? "";
      this.#log = checkLogger(options.logger ?? stderr);
      const warnings = new ThrottledWarnings(this.#log);
      const onStopSignal = (key: Key, signal: StopSignal): void => this.#executor.onStopSignal(key, signal);
      const token = options.token ?? tokenFromEnvironment();
      this.#connection = new Connection(options.server, token, options.tls, this.#lag);
      this.#heartbeat = new Heartbeat(this.#connection, this.id, warnings, onStopSignal);
      this.#reporter = new Reporter(this.#connection, this.id, warnings, onStopSignal);
      this.#completer = new Completer(this.#connection, this.id, warnings, (unsettled) =>
        // A set bound holds for all jobs of the worker.
        options.maxInFlight === undefined && !this.#isDraining ? this.#executor.allowedAhead(unsettled) : {},
      );
      const parts = {
        handlers: this.#handlers,
        middleware: this.#middleware,
        heartbeat: this.#heartbeat,
        reporter: this.#reporter,
        completer: this.#completer,
        limits: new CallLimits(this.#connection, this.id, warnings, onStopSignal),
        waits: new WaitCalls(this.#connection, this.id, warnings, onStopSignal),
      };
      const cancelGraceMs = checkGrace("cancelGraceMs", options.cancelGraceMs);
      const onRoom = (isMore: boolean): void => this.#reportRoom(isMore);
      this.#executor = new Executor(parts, this.#maxInFlight, cancelGraceMs, onRoom);
      const receiver = new AssignmentReceiver(this.#connection, this.id, this.#lag, this.#executor, warnings);
      this.#stream = new JobStream(
        this.#connection,
        () => this.#describe(),
        {
          onAssignments: (all, isOpen) => receiver.take(all, isOpen),
          onBeat: () => this.#heartbeat.beat(),
        },
        warnings,
      );
    } catch (error) {
      throw markStartupError(error);
    }
  }

  /** Serves a job type as published, or, with options, as they declare. */
  handle<P = unknown>(jobType: string, handler: Handler<P>): this;
  handle<P = unknown>(jobType: string, options: HandlerOptions<P>, handler: Handler<P>): this;
  handle<P>(jobType: string, ...rest: [Handler<P>] | [HandlerOptions<P>, Handler<P>]): this {
    if (this.#state !== "new") throw new InvalidInput("handle", "must be called before start");
    const [options, handler] = rest.length === 1 ? [undefined, rest[0]] : rest;
    try {
      this.#handlers.add({ jobType, handler, options });
    } catch (error) {
      throw markStartupError(error);
    }
    return this;
  }

  /** Wraps every handler; the first one registered is the outermost. */
  use(middleware: Middleware): this {
    if (this.#state !== "new") throw new InvalidInput("use", "must be called before start");
    try {
      this.#middleware.push(checkMiddleware(middleware));
    } catch (error) {
      throw markStartupError(error);
    }
    return this;
  }

  /** Resolves once a server has registered this worker; throws if one refuses it. */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      throw markStartupError(error);
    }
  }

  async #start(): Promise<void> {
    if (this.#state !== "new") throw new InvalidInput("start", "must be called only once");
    if (this.#handlers.size === 0) {
      throw new InvalidInput("handle", "must name at least one job type before the start");
    }
    // Report an invalid option here, not at each connect.
    this.#handlers.jobTypes();
    this.#state = "running";
    this.#lag.start();
    this.#heartbeat.start();
    this.#reporter.start();
    this.#completer.start();
    try {
      await this.#stream.start();
    } catch (error) {
      this.#hasFailed = true;
      await this.stop({ graceMs: 0 });
      throw error;
    }
    if (this.#stopping) return;
    this.#log.info(`worker ${this.name} receives jobs from ${this.#connection.streamAddress}`);
  }

  /** Starts; resolves once it has stopped. SIGTERM and SIGINT stop it, a second one at once. */
  async run(): Promise<void> {
    let signals = 0;
    const onSignal = (): void => {
      signals += 1;
      void this.stop(signals > 1 ? { graceMs: 0 } : {});
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.start();
      if (this.#state !== "stopped") {
        await new Promise<void>((resolve) => this.#onStopped.push(resolve));
      }
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
  }

  /** Stops receiving jobs, lets running ones finish within the grace, then releases the rest. */
  stop(options: { graceMs?: number } = {}): Promise<void> {
    checkOptions(options, { graceMs: true }, "options of stop");
    const graceMs = checkGrace("graceMs", options.graceMs, this.#graceMs);
    if (graceMs === 0) this.#hurry.abort();
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<void> {
    if (this.#state === "running") {
      const until = performance.now() + graceMs;
      this.#isDraining = true;
      clearTimeout(this.#roomTimer);
      this.#logGrace(graceMs);
      this.#executor.returnAhead();
      await within(Math.min(graceMs, STOP_MS), this.#stream.drain(), this.#hurry.signal);
      await within(graceMs, this.#executor.quiet(), this.#hurry.signal);
      this.#executor.stopAll("shutdown");
      await within(STOP_MS / 2, this.#executor.quiet());
      this.#executor.abandonAll();
      await within(STOP_MS, this.#completer.idle());
      // Servers may restart at the same time: keep sending results while there is time.
      await within(until - performance.now(), this.#completer.idle(), this.#hurry.signal);
      await this.#stream.stop();
    }
    this.#connection.close();
    await Promise.all([this.#heartbeat.stop(), this.#reporter.stop(), this.#completer.stop()]);
    this.#lag.stop();
    const wasRunning = this.#state === "running";
    this.#state = "stopped";
    if (wasRunning && !this.#hasFailed) this.#log.info(`worker ${this.name} stopped`);
    for (const resolve of this.#onStopped.splice(0)) resolve();
  }

  #logGrace(graceMs: number): void {
    const held = this.#executor.holds.length;
    if (held === 0 || graceMs === 0) return;
    const jobs = held === 1 ? "1 job has" : `${held} jobs have`;
    this.#log.info(`stopping: ${jobs} ${graceMs / 1000} s to end; a second signal does not wait`);
  }

  /** Reports changed room with a new stream: less room at once, more room soon. */
  #reportRoom(isMore: boolean): void {
    if (this.#isDraining) return;
    if (!isMore) return this.#stream.restart();
    this.#roomTimer ??= setTimeout(() => {
      this.#roomTimer = undefined;
      this.#stream.restart();
    }, ROOM_MS);
  }

  /** The handshake; abandoned handlers take room. */
  #describe(): StreamJobsRequest {
    const room = Math.max(0, this.#maxInFlight - this.#executor.abandoned);
    return {
      workerId: this.id,
      name: this.name,
      jobTypes: this.#handlers.jobTypes(),
      maxInFlight: this.#isDraining ? 0 : room,
      holds: this.#executor.holds,
      host: hostname(),
      pid: process.pid,
      code: this.#version,
      memoryBytes: process.memoryUsage.rss(),
    };
  }
}

function checkGrace(field: string, given: number | undefined, otherwise = GRACE_MS): number {
  const ms = given ?? otherwise;
  if (typeof ms === "number" && ms >= 0 && ms <= LONGEST_TIMER_MS) return ms;
  throw new InvalidInput(field, `must be a number of milliseconds from 0 to ${LONGEST_TIMER_MS}`);
}

function checkLogger(logger: Logger): Logger {
  const methods = [logger.info, logger.warn, logger.error];
  if (methods.every((one) => typeof one === "function")) return logger;
  throw new InvalidInput("logger", "must have the functions info, warn and error, like console");
}

/** Waits for the work until the timeout or the signal. */
async function within(ms: number, work: Promise<void>, hurry?: AbortSignal): Promise<void> {
  const done = new AbortController();
  const stop = (): void => done.abort();
  if (hurry?.aborted) stop();
  hurry?.addEventListener("abort", stop);
  await Promise.race([work, pause(ms, done.signal)]);
  hurry?.removeEventListener("abort", stop);
  stop();
}
