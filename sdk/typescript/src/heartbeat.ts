/** Renews the leases of held attempts, and detects those that have lapsed. */

import type { ThrottledWarnings } from "./throttled_warnings.js";
import { BUSY_MS, type Claim, type Key, type StopSignal, keyOf } from "./claim.js";
import type { Connection } from "./connection.js";
import { Loop } from "./loop.js";

const CHUNK = 1000;
const SHORTEST_CALL_MS = 500;
const LONGEST_CALL_MS = 5000;
const STILL_OURS_MS = 1000;

interface HeldLease {
  claim: Claim;
  leaseMs: number;
  dueAt: number;
  lostAt: number;
  timer: NodeJS.Timeout;
}

/** Renews each lease after a third of its time, together with those that are nearly due. */
export class Heartbeat extends Loop {
  readonly #held = new Map<Key, HeldLease>();
  #wakesAt = Infinity;
  #asksForAll = false;

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    warnings: ThrottledWarnings,
    private readonly onStopSignal: (key: Key, signal: StopSignal) => void,
  ) {
    super("heartbeat", warnings);
  }

  hold(claim: Claim, leaseMs: number, leftMs: number): void {
    const key = keyOf(claim);
    const now = performance.now();
    const dueAt = now + Math.max(0, leftMs - (leaseMs * 2) / 3);
    const timer = setTimeout(() => this.#overdue(key), leftMs);
    this.#held.set(key, { claim, leaseMs, dueAt, lostAt: now + leftMs, timer });
    if (dueAt < this.#wakesAt) this.wake();
  }

  forget(key: Key): void {
    clearTimeout(this.#held.get(key)?.timer);
    this.#held.delete(key);
  }

  /** Renews all leases now, because one of the jobs has changed. */
  beat(): void {
    this.#asksForAll = true;
    this.wake();
  }

  override async stop(): Promise<void> {
    for (const key of [...this.#held.keys()]) this.forget(key);
    await super.stop();
  }

  protected async once(): Promise<number> {
    this.#wakesAt = 0;
    const due = this.#due();
    try {
      for (let i = 0; i < due.length; i += CHUNK) await this.#renew(due.slice(i, i + CHUNK));
      if (due.length > 0) this.warnings.resolved(this.name);
    } catch (error) {
      this.warnings.warn(this.name, error);
    }
    let soonest = Infinity;
    for (const held of this.#held.values()) soonest = Math.min(soonest, held.dueAt);
    this.#wakesAt = this.#asksForAll ? 0 : soonest;
    return Math.max(0, this.#wakesAt - performance.now());
  }

  #due(): HeldLease[] {
    const now = performance.now();
    const asksForAll = this.#asksForAll;
    this.#asksForAll = false;
    const all = [...this.#held.values()];
    if (asksForAll) return all;
    if (!all.some((held) => held.dueAt <= now)) return [];
    return all.filter((held) => held.dueAt <= now + held.leaseMs / 12);
  }

  async #renew(due: HeldLease[]): Promise<void> {
    const asked = performance.now();
    const left = Math.min(...due.map((held) => held.lostAt)) - asked;
    const deadlineMs = Math.max(SHORTEST_CALL_MS, Math.min(LONGEST_CALL_MS, left / 2));
    let answers;
    try {
      const claims = due.map((held) => held.claim);
      const memoryBytes = process.memoryUsage.rss();
      const request = { workerId: this.workerId, claims, memoryBytes };
      answers = (await this.connection.call("heartbeat", request, deadlineMs)).answers;
    } catch (error) {
      // Retry often enough for short leases.
      const now = performance.now();
      for (const held of due) held.dueAt = now + Math.min(2000, held.leaseMs / 20);
      throw error;
    }
    due.forEach((held, i) => {
      const key = keyOf(held.claim);
      if (this.#held.get(key) !== held) return;
      if (answers[i] === "ANSWER_FENCED") {
        this.forget(key);
        this.onStopSignal(key, "fenced");
        return;
      }
      if (answers[i] === "ANSWER_ACCEPTED" || answers[i] === "ANSWER_CANCEL_REQUESTED") {
        held.dueAt = asked + held.leaseMs / 3;
        held.lostAt = asked + held.leaseMs;
      } else {
        // While the row is locked, the watchdog cannot take the job back.
        held.dueAt = asked + BUSY_MS;
        held.lostAt = Math.max(held.lostAt, asked + STILL_OURS_MS);
      }
      clearTimeout(held.timer);
      held.timer = setTimeout(() => this.#overdue(key), held.lostAt - performance.now());
      if (answers[i] === "ANSWER_CANCEL_REQUESTED") this.onStopSignal(key, "cancel_requested");
    });
  }

  /** Handles a lease that was not renewed in time. */
  #overdue(key: Key): void {
    // If the event loop was blocked, the answer to a renewal may have arrived unread.
    setImmediate(() => {
      const held = this.#held.get(key);
      if (held === undefined || held.lostAt > performance.now() + 1) return;
      this.forget(key);
      this.onStopSignal(key, "lost");
    });
  }
}
