/** What goes wrong, said once and then now and then, not at every try. */

/** Where the worker writes what it has to say; `console` will do. */
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

const AGAIN_MS = 30_000;

export class Complaints {
  readonly #told = new Map<string, number>();

  constructor(readonly log: Logger) {}

  tell(topic: string, error: unknown): void {
    const now = performance.now();
    const last = this.#told.get(topic);
    if (last !== undefined && now - last < AGAIN_MS) return;
    this.#told.set(topic, now);
    this.log.warn(`${topic}: ${error instanceof Error ? error.message : String(error)}`);
  }

  over(topic: string): void {
    if (this.#told.delete(topic)) this.log.info(`${topic}: works again`);
  }
}
