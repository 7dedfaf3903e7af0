/** The open stream is the worker's presence: jobs come through it, and it is opened anew. */

import type { ClientReadableStream } from "@grpc/grpc-js";

import { type Backoff, Wake, delayAfter } from "./backoff.js";
import type { Complaints } from "./complaints.js";
import { type Connection, asServerError } from "./connection.js";
import { InvalidInput, ServerError } from "./errors.js";
import type { Assignment, StreamJobsRequest, StreamJobsResponse } from "./protocol.js";

const BACKOFF: Backoff = { firstMs: 100, longestMs: 5000 };
const GREETING_MS = 10_000;
// A stream that lasted so long was a good one.
const LASTING_MS = 5000;

interface Events {
  /** Once the stream they came by is no longer open, a server has given them back. */
  onAssignments(assignments: Assignment[], isOpen: () => boolean): void;
  onBeat(): void;
}

type Call = ClientReadableStream<StreamJobsResponse>;

export class JobStream {
  readonly #pause = new Wake();
  #call: Call | undefined;
  #isStopping = false;
  #running: Promise<void> | undefined;
  #failures = 0;
  #restarts = 0;
  #isKnown = false;
  #uncovered = "";
  #ignored = "";
  #refused = "";
  #onKnown: { resolve: () => void; reject: (error: Error) => void } | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly describe: () => StreamJobsRequest,
    private readonly events: Events,
    private readonly complaints: Complaints,
  ) {}

  /** Resolves once a server knows this worker; throws if one refuses it before. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onKnown = { resolve, reject };
      this.#running = this.#run();
    });
  }

  /** What is said of this worker has changed. */
  restart(): void {
    this.#restarts += 1;
    this.#breakOff();
    this.#pause.set();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.restart();
    this.#onKnown?.resolve();
    await this.#running;
  }

  /** Jobs that are still on their way are given back by the server. */
  #breakOff(): void {
    const call = this.#call;
    this.#call = undefined;
    call?.cancel();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const began = performance.now();
      const error = await this.#live();
      // By our own will, then.
      if (error === undefined || this.#isStopping) continue;
      if (performance.now() - began > LASTING_MS) this.#failures = 0;
      // A token that never was there is not waited for.
      if (error instanceof InvalidInput || (!this.#isKnown && isFinal(error))) {
        this.#onKnown?.reject(error);
        return;
      }
      this.#failures += 1;
      // Told also if the stream was lost a moment ago.
      const topic = error.isDenial ? "token" : "stream";
      const next = this.#isKnown ? "trying again" : "is server right? trying again";
      this.complaints.tell(topic, `${this.connection.streamAddress}: ${error.message} (${next})`);
      this.connection.leave();
      await this.#pause.wait(delayAfter(this.#failures, BACKOFF));
    }
  }

  /** Opens the stream and answers why it ended; undefined: because we wanted it to. */
  async #live(): Promise<ServerError | InvalidInput | undefined> {
    let call: Call;
    const restarts = this.#restarts;
    try {
      call = await this.connection.open(this.describe);
    } catch (error) {
      if (!this.#isKnown && error instanceof InvalidInput) return error;
      return error instanceof ServerError ? error : asServerError(error);
    }
    if (restarts !== this.#restarts) {
      call.on("error", () => {});
      call.cancel();
      return undefined;
    }
    this.#call = call;
    let isSilent = false;
    const greeting = setTimeout(() => {
      isSilent = true;
      call.cancel();
    }, GREETING_MS);
    const error = await new Promise<ServerError | undefined>((resolve) => {
      call.once("data", (message: StreamJobsResponse) => {
        clearTimeout(greeting);
        if (this.#call === call) this.#greet(message);
      });
      call.on("data", (message: StreamJobsResponse) => {
        if (this.#call === call) this.#hear(message, () => this.#call === call);
      });
      call.on("error", (error) => resolve(this.connection.failure(error)));
      call.on("end", () => resolve(undefined));
    });
    clearTimeout(greeting);
    const isOurs = this.#call !== call && !isSilent;
    if (this.#call === call) this.#call = undefined;
    if (isOurs) return undefined;
    return error ?? asServerError(new Error("the server ended the stream"));
  }

  /** What only the first message of a stream says. */
  #greet(message: StreamJobsResponse): void {
    this.complaints.over("token");
    this.complaints.over("stream");
    if (!this.#isKnown) {
      this.#isKnown = true;
      this.#onKnown?.resolve();
    }
    const uncovered = message.uncovered.join(", ");
    if (uncovered && uncovered !== this.#uncovered) {
      this.complaints.log.warn(`the token does not cover ${uncovered}: no such jobs are sent`);
    }
    this.#uncovered = uncovered;
    const refused = message.ignored
      .filter((one) => one.argumentsRefused)
      .map((one) => `${one.jobType} (${one.argumentsRefused})`)
      .join("; ");
    if (refused && refused !== this.#refused) {
      this.complaints.log.warn(
        `the server refuses the schema of the arguments of ${refused}: ` +
          "payloads are checked by this worker, not at submit",
      );
    }
    this.#refused = refused;
    const ignored = message.ignored
      .map((one) => ({ ...one, fields: unpublished(one) }))
      .filter((one) => one.fields.length > 0)
      .map((one) => `${one.jobType}: ${one.fields.join(", ")}`)
      .join("; ");
    if (ignored && ignored !== this.#ignored) {
      this.complaints.log.warn(
        `declared otherwise than published, and not in force: ${ignored}` +
          " (the token needs workers:declare)",
      );
    }
    this.#ignored = ignored;
  }

  #hear(message: StreamJobsResponse, isOpen: () => boolean): void {
    if (message.beat) this.events.onBeat();
    if (message.assignments.length > 0) this.events.onAssignments(message.assignments, isOpen);
  }
}

/** The fields that are published otherwise. */
function unpublished(one: { fields: string[]; argumentsRefused: string }): string[] {
  return one.fields.filter((name) => name !== "arguments" || !one.argumentsRefused);
}

/** Trying again as it is would end alike. */
function isFinal(error: ServerError): boolean {
  return error.isRefusal || error.isDenial || error.code === "UNIMPLEMENTED";
}
