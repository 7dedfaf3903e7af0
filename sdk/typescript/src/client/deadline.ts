/** Aborts when the caller's signal does, or when a time has passed. */

import { after } from "../backoff.js";

export class Deadline {
  /** The time has passed. */
  isOver = false;
  readonly #controller = new AbortController();
  readonly #given: AbortSignal | undefined;
  #stopTimer = (): void => {};

  constructor(given: AbortSignal | undefined) {
    this.#given = given;
    if (given?.aborted) this.#abort();
    given?.addEventListener("abort", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts the time, or starts it again. */
  start(ms: number): void {
    this.#stopTimer();
    if (ms === Infinity) return;
    this.#stopTimer = after(ms, () => {
      this.isOver = true;
      this.#controller.abort();
    });
  }

  /** Stops the time. */
  stop(): void {
    this.#stopTimer();
  }

  /** Aborts whatever still uses the signal, and forgets the caller's. */
  end(): void {
    this.#stopTimer();
    this.#given?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }

  readonly #abort = (): void => this.#controller.abort(this.#given?.reason);
}
