import { EventParser, type ServerEvent } from "./events";
import { parseJson } from "./json";

export type StreamStatus = "off" | "connecting" | "live" | "reconnecting" | "paused";

type Settings = {
  /** Open the stream of these topics, after the last event. */
  open: (topics: string[], lastId: string | null, signal: AbortSignal) => Promise<Response>;
  onEvent: (event: ServerEvent) => void;
  /** The server knows one of the topics no more. */
  onMissing: () => void;
  onChange: () => void;
};

// The server sends a comment every ten seconds.
const SILENT_MS = 25_000;
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 15_000;

/** The server refused the stream, and may have said when to try again. */
class StreamRefused extends Error {
  readonly status: number;
  readonly retryAfterMs: number;

  constructor(response: Response) {
    super(`status ${response.status}`);
    this.status = response.status;
    this.retryAfterMs = 1000 * (Number(response.headers.get("Retry-After")) || 0);
  }
}

/** The one stream of this tab. It reconnects by itself and continues after the last event. */
export class LiveStream {
  status: StreamStatus = "off";
  /** When the server was last heard of, in milliseconds since 1970. */
  heardAt: number | null = null;
  #topics: string[] = [];
  #lastId: string | null = null;
  #connection: AbortController | null = null;
  #reasonsToPause = new Set<string>();

  constructor(readonly settings: Settings) {}

  /** Follow these topics from now on. */
  follow(topics: string[]): void {
    const wanted = [...new Set(topics)].sort();
    if (wanted.join("\n") === this.#topics.join("\n")) return;
    this.#topics = wanted;
    // The log has no events of topics that nobody followed: start with the current state.
    this.#lastId = null;
    this.#restart();
  }

  /** Pause for a reason (`hidden`, `person`), or take the reason away. */
  pause(reason: string, isPaused: boolean): void {
    if (isPaused === this.#reasonsToPause.has(reason)) return;
    if (isPaused) this.#reasonsToPause.add(reason);
    else this.#reasonsToPause.delete(reason);
    this.#restart();
  }

  close(): void {
    this.#topics = [];
    this.#restart();
  }

  #restart(): void {
    this.#connection?.abort();
    this.#connection = null;
    if (this.#topics.length === 0) this.#become("off");
    else if (this.#reasonsToPause.size > 0) this.#become("paused");
    else {
      this.#connection = new AbortController();
      void this.#run(this.#connection.signal);
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    this.#become("connecting");
    for (let failures = 0; !signal.aborted; failures++) {
      let longEnoughMs = 0;
      try {
        await this.#read(signal, () => {
          failures = 0;
        });
      } catch (error) {
        // Any end of the stream is followed by another attempt.
        if (error instanceof StreamRefused) {
          longEnoughMs = error.retryAfterMs;
          if (error.status === 404) this.settings.onMissing();
        }
      }
      if (signal.aborted) return;
      this.#become("reconnecting");
      await delay(longEnoughMs + delayMs(failures), signal);
    }
  }

  async #read(signal: AbortSignal, onOpen: () => void): Promise<void> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENT_MS);
    const either = AbortSignal.any([signal, silent.signal]);
    try {
      const response = await this.settings.open(this.#topics, this.#lastId, either);
      if (!response.ok || response.body === null) throw new StreamRefused(response);
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || either.aborted) return;
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENT_MS);
        this.heardAt = Date.now();
        onOpen();
        if (this.status !== "live") this.#become("live");
        for (const event of parser.push(value, parseJson)) {
          if (event.id) this.#lastId = event.id;
          this.settings.onEvent(event);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #become(status: StreamStatus): void {
    this.status = status;
    this.settings.onChange();
  }
}

/** Doubles with every failure, and differs widely: a restart ends the streams of all tabs at once. */
function delayMs(failures: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** failures) * (0.2 + Math.random());
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
