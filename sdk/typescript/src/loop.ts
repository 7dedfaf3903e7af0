/** A background loop: runs when woken or due, with a backoff after failures. */

import { type Backoff, Wake, delayAfter } from "./backoff.js";
import type { ThrottledWarnings } from "./throttled_warnings.js";

const BACKOFF: Backoff = { firstMs: 50, longestMs: 2000 };

export abstract class Loop {
  readonly #wake = new Wake();
  readonly #pause = new Wake();
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(
    readonly name: string,
    protected readonly warnings: ThrottledWarnings,
  ) {}

  /** Runs one round; returns the milliseconds until the next one, unless it is woken. */
  protected abstract once(): Promise<number>;

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends after the current round. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#pause.set();
    this.#wake.set();
    await this.#running;
  }

  protected get isStopping(): boolean {
    return this.#isStopping;
  }

  protected wake(): void {
    this.#wake.set();
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#isStopping) {
      try {
        const delayMs = await this.once();
        if (failures) this.warnings.resolved(this.name);
        failures = 0;
        await this.#wake.wait(delayMs);
      } catch (error) {
        failures += 1;
        this.warnings.warn(this.name, error);
        await this.#pause.wait(delayAfter(failures, BACKOFF));
      }
    }
  }
}
