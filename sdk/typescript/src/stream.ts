/** The stream on which a worker receives jobs; reopened when it ends. */

import type { ClientReadableStream } from "@grpc/grpc-js";

import { type Backoff, Wake, delayAfter } from "./backoff.js";
import type { ThrottledWarnings } from "./throttled_warnings.js";
import { type Connection, asServerError } from "./connection.js";
import { InvalidInput, ServerError } from "./errors.js";
import type { Assignment, StreamJobsRequest, StreamJobsResponse } from "./protocol.js";
import { expiryText } from "./token.js";

const BACKOFF: Backoff = { firstMs: 100, longestMs: 5000 };
const HANDSHAKE_MS = 10_000;
// A stream that lasted this long counts as a success.
const LASTING_MS = 5000;

interface Events {
  /** Once their stream is no longer open, the server has released them. */
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
  #expiry = "";
  #onKnown: { resolve: () => void; reject: (error: Error) => void } | undefined;
  #onOpened: (() => void) | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly describe: () => StreamJobsRequest,
    private readonly events: Events,
    private readonly warnings: ThrottledWarnings,
  ) {}

  /** Resolves once a server has registered this worker; throws if one refuses it before. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onKnown = { resolve, reject };
      this.#running = this.#run();
    });
  }

  /** Opens a new stream, because the worker's handshake has changed. */
  restart(): void {
    this.#restarts += 1;
    this.#cancel();
    this.#pause.set();
  }

  /**
   * Opens a stream with the handshake of a stopping worker; resolves once a server has answered it.
   * Jobs still being sent are not among those the worker holds, so the server releases them.
   */
  async drain(): Promise<void> {
    const opened = new Promise<void>((resolve) => (this.#onOpened = resolve));
    this.restart();
    if (this.#isKnown) await opened;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.restart();
    this.#onKnown?.resolve();
    await this.#running;
  }

  /** Cancels the stream; the server releases jobs that are still being sent. */
  #cancel(): void {
    const call = this.#call;
    this.#call = undefined;
    call?.cancel();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const began = performance.now();
      const error = await this.#runOnce();
      // We ended it on purpose.
      if (error === undefined || this.#isStopping) continue;
      if (performance.now() - began > LASTING_MS) this.#failures = 0;
      // Do not wait for a token that never existed.
      if (error instanceof InvalidInput || (!this.#isKnown && isFinal(error))) {
        this.#onKnown?.reject(error);
        return;
      }
      this.#failures += 1;
      // A separate topic: a denial is logged even if a lost stream was logged a moment ago.
      const topic = error.isDenial ? "token" : "stream";
      const next = this.#isKnown ? "trying again" : "check the server option; trying again";
      this.warnings.warn(topic, `${this.connection.streamAddress}: ${error.message} (${next})`);
      this.connection.leave();
      await this.#pause.wait(delayAfter(this.#failures, BACKOFF));
    }
  }

  /** Opens the stream and returns why it ended; undefined: we ended it on purpose. */
  async #runOnce(): Promise<ServerError | InvalidInput | undefined> {
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
    const handshake = setTimeout(() => {
      isSilent = true;
      call.cancel();
    }, HANDSHAKE_MS);
    const error = await new Promise<ServerError | undefined>((resolve) => {
      call.once("data", (message: StreamJobsResponse) => {
        clearTimeout(handshake);
        if (this.#call !== call) return;
        this.#onFirst(message);
        this.#onOpened?.();
      });
      call.on("data", (message: StreamJobsResponse) => {
        if (this.#call === call) this.#onMessage(message, () => this.#call === call);
      });
      call.on("error", (error) => resolve(this.connection.failure(error)));
      call.on("end", () => resolve(undefined));
    });
    clearTimeout(handshake);
    const isOurs = this.#call !== call && !isSilent;
    if (this.#call === call) this.#call = undefined;
    if (isOurs) return undefined;
    return error ?? asServerError(new Error("the server ended the stream"));
  }

  /** Reads the first message of a stream, and logs its warnings. */
  #onFirst(message: StreamJobsResponse): void {
    this.warnings.resolved("token");
    this.warnings.resolved("stream");
    if (!this.#isKnown) {
      this.#isKnown = true;
      this.#onKnown?.resolve();
    }
    const uncovered = message.uncovered.join(", ");
    if (uncovered && uncovered !== this.#uncovered) {
      this.warnings.log.warn(`the token does not cover ${uncovered}: this worker gets no such jobs`);
    }
    this.#uncovered = uncovered;
    const refused = message.ignored
      .filter((one) => one.argumentsRefused)
      .map((one) => `${one.jobType} (${one.argumentsRefused})`)
      .join("; ");
    if (refused && refused !== this.#refused) {
      this.warnings.log.warn(
        `the server refuses the argument schema of ${refused}: ` +
          "this worker checks payloads, submits are not checked",
      );
    }
    this.#refused = refused;
    const ignored = message.ignored
      .map((one) => ({ ...one, fields: unpublished(one) }))
      .filter((one) => one.fields.length > 0)
      .map((one) => `${one.jobType}: ${one.fields.join(", ")}`)
      .join("; ");
    if (ignored && ignored !== this.#ignored) {
      this.warnings.log.warn(
        `declarations that differ from the published ones are not in force: ${ignored}` +
          " (the token needs workers:declare)",
      );
    }
    this.#ignored = ignored;
  }

  /** Logs that the token expires soon, once for each number of days or hours left. */
  #onExpiry(leftMs: number): void {
    const text = expiryText(leftMs);
    if (text === this.#expiry) return;
    this.#expiry = text;
    this.warnings.log.warn(`the token ${text}: create another with \`laneway tokens create\``);
  }

  #onMessage(message: StreamJobsResponse, isOpen: () => boolean): void {
    if (message.tokenExpiresInMs !== undefined) this.#onExpiry(message.tokenExpiresInMs);
    if (message.beat) this.events.onBeat();
    if (message.assignments.length > 0) this.events.onAssignments(message.assignments, isOpen);
  }
}

/** The fields whose published values differ. */
function unpublished(one: { fields: string[]; argumentsRefused: string }): string[] {
  return one.fields.filter((name) => name !== "arguments" || !one.argumentsRefused);
}

/** Whether another try would fail again. */
function isFinal(error: ServerError): boolean {
  return error.isRefusal || error.isDenial || error.code === "UNIMPLEMENTED";
}
