/** The events of one job, in order and each once, across lost connections and servers. */

import type { Job, JobEventName, Status } from "../_generated/api.js";
import { Deadline } from "./deadline.js";
import { ApiError } from "./errors.js";
import { type HttpConnection, type RequestOptions, mayPass, parsed } from "./http_connection.js";
import { SseParser } from "./sse.js";

/** A change of a job; a stream can be resumed after its `id`. */
export interface JobEvent {
  id: string | undefined;
  /** Newer servers may send other names. */
  name: JobEventName;
  /** The job right after the change. */
  job: Job;
}

export interface WatchOptions extends RequestOptions {
  /** Continue after the event with this id. */
  lastEventId?: string | undefined;
}

const ENDS: ReadonlySet<Status> = new Set<Status>(["completed", "failed", "cancelled"]);
// The server sends at least a comment every 15 s; after this silence the connection is dead.
const SILENCE_MS = 45_000;
const RECONNECTS = 10;

export function hasEnded(job: Job): boolean {
  return ENDS.has(job.status);
}

/** Yields the events of a job until it has ended; reconnects, and continues after the last event. */
export async function* jobEvents(
  connection: HttpConnection,
  id: string,
  { lastEventId, signal }: WatchOptions,
): AsyncGenerator<JobEvent, void, undefined> {
  const stream = new SseStream(connection, id, lastEventId, signal);
  for (let failures = 0; ; ) {
    try {
      for await (const event of stream.connect()) {
        failures = 0;
        if (event === undefined) continue;
        yield event;
        if (hasEnded(event.job)) return;
      }
      if (stream.isOver) return;
    } catch (error) {
      if (failures >= RECONNECTS || !mayPass(error)) throw error;
      const leastMs = failures === 0 ? stream.retryMs : 0;
      await connection.pause(++failures, error, signal, leastMs);
    }
  }
}

class SseStream {
  /** The event of `lastEventId` was the last one. */
  isOver = false;
  /** The pause that the server asks for after a lost connection. */
  retryMs = 0;

  constructor(
    private readonly connection: HttpConnection,
    private readonly id: string,
    private lastId: string | undefined,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Yields the events of one connection, and `undefined` for bytes without one; throws when it is lost. */
  async *connect(): AsyncGenerator<JobEvent | undefined, void, undefined> {
    this.signal?.throwIfAborted();
    const deadline = new Deadline(this.signal);
    try {
      const chunks = this.#chunks(deadline);
      const parser = new SseParser(this.lastId);
      for await (const chunk of chunks) {
        yield undefined;
        for (const message of parser.feed(chunk)) {
          this.lastId = message.id;
          yield { id: message.id, name: message.event as JobEventName, job: jobOf(message.data) };
        }
        this.retryMs = parser.retryMs ?? 0;
      }
    } finally {
      deadline.end();
    }
  }

  async *#chunks(deadline: Deadline): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      deadline.start(SILENCE_MS);
      const response = await this.connection.open(this.id, this.lastId, deadline);
      if (response.status === 204) {
        this.isOver = true;
        return;
      }
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (;;) {
        deadline.start(SILENCE_MS);
        const { done, value } = await reader.read();
        // The caller may take its time.
        deadline.stop();
        if (done) break;
        yield value;
      }
    } catch (error) {
      throw this.connection.failure(error, this.signal, deadline.isOver ? "the stream is silent" : undefined);
    }
    throw this.connection.failure(undefined, this.signal, "the stream ended");
  }
}

function jobOf(data: string): Job {
  const job = parsed(data);
  if (typeof job !== "object" || job === null || !("status" in job)) {
    throw new ApiError(200, { code: "server_error", detail: "the stream sent an event without a job" });
  }
  return job as Job;
}
