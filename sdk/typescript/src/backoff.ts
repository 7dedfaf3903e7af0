/** Delays before retries, and timers. */

export interface Backoff {
  firstMs: number;
  longestMs: number;
}

/** A random delay between half and all of a maximum that doubles with each failure. */
export function delayAfter(failures: number, backoff: Backoff, random = Math.random): number {
  const longest = Math.min(backoff.longestMs, backoff.firstMs * 2 ** Math.min(failures - 1, 30));
  return longest * (0.5 + 0.5 * random());
}

// The longest delay of a Node.js timer.
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Waits until a timeout, or until `set` is called. */
export class Wake {
  #isSet = false;
  #resume: (() => void) | undefined;

  set(): void {
    this.#isSet = true;
    this.#resume?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.#isSet && ms > 0) {
      await new Promise<void>((resolve) => {
        const timer =
          ms === Infinity ? undefined : setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS));
        this.#resume = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#resume = undefined;
    }
    this.#isSet = false;
  }
}

/** Calls back after any delay, also beyond LONGEST_TIMER_MS; returns a function that cancels it. */
export function after(ms: number, call: () => void): () => void {
  let timer: NodeJS.Timeout;
  const until = performance.now() + ms;
  const arm = (): void => {
    const left = until - performance.now();
    timer =
      left > LONGEST_TIMER_MS
        ? setTimeout(arm, LONGEST_TIMER_MS)
        : setTimeout(call, Math.max(0, left));
  };
  arm();
  return () => clearTimeout(timer);
}

/** Resolves after the delay, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
