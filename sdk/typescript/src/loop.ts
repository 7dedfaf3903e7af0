/** Work that is done again and again: soon after it was asked for, later after a failure. */

import { type Backoff, Wake, delayAfter } from "./backoff.js";
import type { Complaints } from "./complaints.js";

const BACKOFF: Backoff = { firstMs: 50, longestMs: 2000 };

export abstract class Loop {
  readonly #wake = new Wake();
  readonly #pause = new Wake();
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(
    readonly name: string,
    protected readonly complaints: Complaints,
  ) {}

  /** One round; answers how many milliseconds later the next one is due, unless it is woken. */
  protected abstract once(): Promise<number>;

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends after the round it is in. */
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
        if (failures) this.complaints.over(this.name);
        failures = 0;
        await this.#wake.wait(delayMs);
      } catch (error) {
        failures += 1;
        this.complaints.tell(this.name, error);
        await this.#pause.wait(delayAfter(failures, BACKOFF));
      }
    }
  }
}
