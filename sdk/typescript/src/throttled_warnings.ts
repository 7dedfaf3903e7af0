/** Logs a repeated problem at most once in 30 seconds. */

/** The logger of a worker; `console` is one. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export const stderr: Logger = {
  info: (message) => console.error(`laneway: ${message}`),
  warn: (message) => console.error(`laneway: ${message}`),
  error: (message) => console.error(`laneway: ${message}`),
};

const INTERVAL_MS = 30_000;

export class ThrottledWarnings {
  readonly #loggedAt = new Map<string, number>();

  constructor(readonly log: Logger) {}

  warn(topic: string, error: unknown): void {
    const now = performance.now();
    const last = this.#loggedAt.get(topic);
    if (last !== undefined && now - last < INTERVAL_MS) return;
    this.#loggedAt.set(topic, now);
    this.log.warn(`${topic}: ${error instanceof Error ? error.message : String(error)}`);
  }

  resolved(topic: string): void {
    if (this.#loggedAt.delete(topic)) this.log.info(`${topic}: works again`);
  }
}
