/** How long what is read now may have waited: while handlers block, nothing is read. */

const TICK_MS = 250;
// What came during a standstill may be read over several turns of the event loop.
const AFTER_MS = 1000;

export class Lag {
  #timer: NodeJS.Timeout | undefined;
  #seenAt = performance.now();
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
    const recent = now - this.#worst.at < AFTER_MS ? this.#worst.ms : 0;
    return Math.max(now - this.#seenAt, recent);
  }

  #see(): void {
    const now = performance.now();
    if (now - this.#seenAt >= this.ms) this.#worst = { ms: now - this.#seenAt, at: now };
    this.#seenAt = now;
  }
}
