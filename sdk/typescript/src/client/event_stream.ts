/** The events of a stream, across lost connections and servers, until one that is the last. */

import { Deadline } from "./deadline.js";
import { type HttpConnection, type StreamOperation, mayPass } from "./http_connection.js";
import { type SseMessage, SseParser } from "./sse.js";

// The server sends at least a comment every 15 s; after this silence the connection is dead.
const SILENCE_MS = 45_000;
const RECONNECTS = 10;

/** A stream of the server, and how to read its events. */
export interface StreamSource<Change> {
  operation: StreamOperation;
  id: string;
  lastEventId?: string | undefined;
  signal?: AbortSignal | undefined;
  read: (message: SseMessage) => Change;
  isLast: (change: Change) => boolean;
}

/** Yields events until the last one; reconnects, and continues after the newest. */
export async function* follow<Change extends object>(
  connection: HttpConnection,
  source: StreamSource<Change>,
): AsyncGenerator<Change, void, undefined> {
  const stream = new SseStream(connection, source);
  for (let failures = 0; ; ) {
    try {
      for await (const event of stream.connect()) {
        failures = 0;
        if (event === undefined) continue;
        yield event;
        if (source.isLast(event)) return;
      }
      if (stream.isOver) return;
    } catch (error) {
      if (failures >= RECONNECTS || !mayPass(error)) throw error;
      const leastMs = failures === 0 ? stream.retryMs : 0;
      await connection.pause(++failures, error, source.signal, leastMs);
    }
  }
}

class SseStream<Change> {
  /** The event of `lastEventId` was the last one. */
  isOver = false;
  /** The pause that the server asks for after a lost connection. */
  retryMs = 0;

  private lastId: string | undefined;

  constructor(
    private readonly connection: HttpConnection,
    private readonly source: StreamSource<Change>,
  ) {
    this.lastId = source.lastEventId;
  }

  /** Yields the events of one connection, and `undefined` for bytes without one; throws when it is lost. */
  async *connect(): AsyncGenerator<Change | undefined, void, undefined> {
    this.source.signal?.throwIfAborted();
    const deadline = new Deadline(this.source.signal);
    try {
      const chunks = this.#chunks(deadline);
      const parser = new SseParser(this.lastId);
      for await (const chunk of chunks) {
        yield undefined;
        for (const message of parser.feed(chunk)) {
          this.lastId = message.id;
          yield this.source.read(message);
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
      const response = await this.connection.open(this.source.operation, this.source.id, this.lastId, deadline);
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
      throw this.connection.failure(error, this.source.signal, deadline.isOver ? "the stream is silent" : undefined);
    }
    throw this.connection.failure(undefined, this.source.signal, "the stream ended");
  }
}
