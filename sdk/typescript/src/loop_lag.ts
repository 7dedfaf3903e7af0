/** Measures how long the event loop was blocked, so how long unread messages have waited. */

const TICK_MS = 250;
// Messages that arrived during a block may be read over several turns of the event loop.
const AFTER_MS = 1000;

export class LoopLag {
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = Infinity;
  #worst = { ms: 0, at: 0 };

  start(): void {
    this.#tickedAt = performance.now();
    // After the turn in which messages are read, not before.
    this.#timer ??= setInterval(() => setImmediate(() => this.#tick()), TICK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  get ms(): number {
    const now = performance.now();
    return Math.max(now - this.#tickedAt, this.#recent(now));
  }

  #tick(): void {
    const now = performance.now();
    const ms = now - this.#tickedAt;
    if (ms >= this.#recent(now)) this.#worst = { ms, at: now };
    this.#tickedAt = now;
  }

  #recent(now: number): number {
    return now - this.#worst.at < AFTER_MS ? this.#worst.ms : 0;
  }
}
