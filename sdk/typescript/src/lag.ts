/** How long what is read now may have waited: while handlers block, nothing is read. */

const TICK_MS = 250;
// What came during a standstill may be read over several turns of the event loop.
const AFTER_MS = 1000;

export class Lag {
  #timer: NodeJS.Timeout | undefined;
  #seenAt = Infinity;
  #worst = { ms: 0, at: 0 };

  start(): void {
    this.#seenAt = performance.now();
    // After the turn in which things are read, not before.
    this.#timer ??= setInterval(() => setImmediate(() => this.#see()), TICK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get ms(): number {
    const now = performance.now();
    return Math.max(now - this.#seenAt, this.#recent(now));
  }

  #see(): void {
    const now = performance.now();
    const ms = now - this.#seenAt;
    if (ms >= this.#recent(now)) this.#worst = { ms, at: now };
    this.#seenAt = now;
  }

  #recent(now: number): number {
    return now - this.#worst.at < AFTER_MS ? this.#worst.ms : 0;
  }
}
