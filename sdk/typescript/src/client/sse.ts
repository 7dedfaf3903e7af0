/** Parses server-sent events, as the HTML standard defines them. */

import { ApiError } from "./errors.js";

/** One event; `id` is the newest id so far, from this event or an earlier one. */
export interface SseMessage {
  id: string | undefined;
  event: string;
  data: string;
}

// The largest line or event: a job's payload and result with room to spare.
const LONGEST = 64 * 1024 * 1024;
const LONGEST_RETRY_MS = 60_000;

export class SseParser {
  /** The id of the newest complete event. */
  lastId: string | undefined;
  /** The pause before a new connection that the server asks for. */
  retryMs: number | undefined;
  readonly #decoder = new TextDecoder();
  #text = "";
  #id: string | undefined;
  #event = "";
  #data: string[] = [];
  #size = 0;

  constructor(lastId?: string) {
    this.lastId = this.#id = lastId;
  }

  /** The messages that these bytes complete, parsed one at a time. */
  *feed(chunk: Uint8Array): Generator<SseMessage, void, undefined> {
    // The decoder also removes a byte order mark.
    this.#text += this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (;;) {
      const end = lineEnd(this.#text, from);
      if (end === undefined) break;
      const line = this.#text.slice(from, end.at);
      from = end.next;
      const message = this.#parse(line);
      if (message !== undefined) yield message;
    }
    this.#text = this.#text.slice(from);
    if (this.#text.length > LONGEST) throw tooLarge("a line");
  }

  #parse(line: string): SseMessage | undefined {
    if (line === "") return this.#complete();
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#add(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d{1,9}$/.test(value)) {
      this.retryMs = Math.min(Number(value), LONGEST_RETRY_MS);
    }
    return undefined;
  }

  #add(value: string): void {
    this.#data.push(value);
    this.#size += value.length;
    if (this.#size > LONGEST) throw tooLarge("an event");
  }

  #complete(): SseMessage | undefined {
    // Not earlier: an event that was cut off must be sent again.
    this.lastId = this.#id;
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    if (data.length === 0) return undefined;
    return { id: this.lastId, event: event || "message", data: data.join("\n") };
  }
}

function tooLarge(part: string): ApiError {
  return new ApiError(200, { code: "server_error", detail: `the stream sent ${part} that is too large` });
}

function lineEnd(text: string, from: number): { at: number; next: number } | undefined {
  const feed = text.indexOf("\n", from);
  const back = text.indexOf("\r", from);
  if (back === -1 || (feed !== -1 && feed < back)) {
    return feed === -1 ? undefined : { at: feed, next: feed + 1 };
  }
  // A line feed may follow with the next bytes.
  if (back + 1 === text.length) return undefined;
  return { at: back, next: text[back + 1] === "\n" ? back + 2 : back + 1 };
}
