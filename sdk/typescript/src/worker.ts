/** A worker: connects to a server, is sent jobs, runs their handlers. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { LONGEST_TIMER_MS, pause } from "./backoff.js";
import type { Key, News } from "./claim.js";
import { Complaints, type Logger, stderr } from "./complaints.js";
import { Completer } from "./completer.js";
import { Connection, type Tls, type Token, tokenFromEnvironment } from "./connection.js";
import { InvalidInput } from "./errors.js";
import { Executor } from "./executor.js";
import { type Handler, type HandlerOptions, Handlers } from "./handlers.js";
import { Heartbeat } from "./heartbeat.js";
import { Intake } from "./intake.js";
import { Lag } from "./lag.js";
import { CallLimits } from "./limits.js";
import { mistake } from "./mistakes.js";
import { checkOptions, type Names } from "./options.js";
import type { StreamJobsRequest } from "./protocol.js";
import { Reporter } from "./reporter.js";
import { JobStream } from "./stream.js";

export interface WorkerOptions {
  /** host:port of a server, or several: one after the other is tried. */
  server: string | string[];
  /** Or a function that says it at each call; else LANEWAY_TOKEN or LANEWAY_TOKEN_FILE. */
  token?: Token | undefined;
  /** For people; the host and the process unless said. */
  name?: string;
  /** Jobs in hand at once; 100 unless said. */
  maxInFlight?: number;
  /** Always needed but on loopback; true: with the system's certificate authorities. */
  tls?: boolean | Tls;
  /** The version of your code, shown with the worker. */
  version?: string;
  /** How long a handler may go on when told to stop, before it is left behind; 30 s unless said. */
  cancelGraceMs?: number;
  /** How long `run` lets jobs finish after a signal; 30 s unless said. */
  graceMs?: number;
  /** Where the worker writes what it has to say; stderr unless said. */
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
// Handlers that were left behind and return are gathered for so long.
const ROOM_MS = 500;
// What is left to do at a stop may not take longer.
const STOP_MS = 5000;

export class Worker {
  readonly id = randomUUID();
  readonly name: string;
  readonly #handlers = new Handlers();
  readonly #maxInFlight: number;
  readonly #graceMs: number;
  readonly #version: string;
  readonly #log: Logger;
  readonly #connection: Connection;
  readonly #lag = new Lag();
  readonly #heartbeat: Heartbeat;
  readonly #reporter: Reporter;
  readonly #completer: Completer;
  readonly #executor: Executor;
  readonly #stream: JobStream;
  readonly #hurry = new AbortController();
  #isDraining = false;
  #gathering: NodeJS.Timeout | undefined;
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
      const complaints = new Complaints(this.#log);
      const onNews = (key: Key, news: News): void => this.#executor.hear(key, news);
      const token = options.token ?? tokenFromEnvironment();
      this.#connection = new Connection(options.server, token, options.tls, this.#lag);
      this.#heartbeat = new Heartbeat(this.#connection, this.id, complaints, onNews);
      this.#reporter = new Reporter(this.#connection, this.id, complaints, onNews);
      this.#completer = new Completer(this.#connection, this.id, complaints);
      const parts = {
        handlers: this.#handlers,
        heartbeat: this.#heartbeat,
        reporter: this.#reporter,
        completer: this.#completer,
        limits: new CallLimits(this.#connection, this.id, complaints, onNews),
      };
      const cancelGraceMs = checkGrace("cancelGraceMs", options.cancelGraceMs);
      const onRoom = (isMore: boolean): void => this.#tellRoom(isMore);
      this.#executor = new Executor(parts, cancelGraceMs, onRoom);
      const intake = new Intake(this.#connection, this.id, this.#lag, this.#executor, complaints);
      this.#stream = new JobStream(
        this.#connection,
        () => this.#describe(),
        {
          onAssignments: (all, isOpen) => intake.take(all, isOpen),
          onBeat: () => this.#heartbeat.beat(),
        },
        complaints,
      );
    } catch (error) {
      throw mistake(error);
    }
  }

  /** Serves a job type: as it is known elsewhere, or, with options, as they say. */
  handle<P = unknown>(jobType: string, handler: Handler<P>): this;
  handle<P = unknown>(jobType: string, options: HandlerOptions<P>, handler: Handler<P>): this;
  handle<P>(jobType: string, ...rest: [Handler<P>] | [HandlerOptions<P>, Handler<P>]): this {
    if (this.#state !== "new") throw new InvalidInput("handle", "comes before start");
    const [options, handler] = rest.length === 1 ? [undefined, rest[0]] : rest;
    try {
      this.#handlers.add({ jobType, handler, options });
    } catch (error) {
      throw mistake(error);
    }
    return this;
  }

  /** Resolves once a server knows this worker; throws if one refuses it. */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      throw mistake(error);
    }
  }

  async #start(): Promise<void> {
    if (this.#state !== "new") throw new InvalidInput("start", "a worker is started once");
    if (this.#handlers.size === 0) {
      throw new InvalidInput("handle", "must name at least one job type before the start");
    }
    // A wrong option is said here, and not at each try to connect.
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
    this.#log.info(`worker ${this.name} takes jobs from ${this.#connection.streamAddress}`);
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

  /** Takes no more jobs, lets those in hand finish within the grace, then releases the rest. */
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
      clearTimeout(this.#gathering);
      this.#stream.restart();
      this.#tellGrace(graceMs);
      await within(graceMs, this.#executor.quiet(), this.#hurry.signal);
      this.#executor.stopAll("shutdown");
      await within(STOP_MS / 2, this.#executor.quiet());
      this.#executor.leaveAllBehind();
      await within(STOP_MS, this.#completer.idle());
      // Servers may be restarted with us: what was done is told as long as there is time.
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

  #tellGrace(graceMs: number): void {
    const inHand = this.#executor.holds.length;
    if (inHand === 0 || graceMs === 0) return;
    const jobs = inHand === 1 ? "1 job has" : `${inHand} jobs have`;
    this.#log.info(`stopping: ${jobs} ${graceMs / 1000} s to end; a second signal does not wait`);
  }

  /** A server hears of it by a new stream: at once of less room, soon of more. */
  #tellRoom(isMore: boolean): void {
    if (this.#isDraining) return;
    if (!isMore) return this.#stream.restart();
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      this.#stream.restart();
    }, ROOM_MS);
  }

  /** What a server is told at connecting; handlers left behind take room. */
  #describe(): StreamJobsRequest {
    const room = Math.max(0, this.#maxInFlight - this.#executor.leftBehind);
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
  const said = [logger.info, logger.warn, logger.error];
  if (said.every((one) => typeof one === "function")) return logger;
  throw new InvalidInput("logger", "must have info, warn and error, as console has");
}

/** Waits for it, but no longer than that, nor after the signal. */
async function within(ms: number, work: Promise<void>, hurry?: AbortSignal): Promise<void> {
  const done = new AbortController();
  const stop = (): void => done.abort();
  if (hurry?.aborted) stop();
  hurry?.addEventListener("abort", stop);
  await Promise.race([work, pause(ms, done.signal)]);
  hurry?.removeEventListener("abort", stop);
  stop();
}
