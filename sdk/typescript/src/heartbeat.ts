/** Renews the leases of what is in hand, and notices those that are over. */

import type { Complaints } from "./complaints.js";
import { BUSY_MS, type Claim, type Key, type News, keyOf } from "./claim.js";
import type { Connection } from "./connection.js";
import { Loop } from "./loop.js";

const CHUNK = 1000;
const SHORTEST_CALL_MS = 500;
const LONGEST_CALL_MS = 5000;
const STILL_OURS_MS = 1000;

interface Held {
  claim: Claim;
  leaseMs: number;
  dueAt: number;
  lostAt: number;
  timer: NodeJS.Timeout;
}

/** Each lease is renewed when a third of it has passed; those nearly due go along. */
export class Heartbeat extends Loop {
  readonly #held = new Map<Key, Held>();
  #wakesAt = Infinity;
  #asksForAll = false;

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    complaints: Complaints,
    private readonly onNews: (key: Key, news: News) => void,
  ) {
    super("heartbeat", complaints);
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

  /** Asks about all of them now: something has changed. */
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
      if (due.length > 0) this.complaints.over(this.name);
    } catch (error) {
      this.complaints.tell(this.name, error);
    }
    let soonest = Infinity;
    for (const held of this.#held.values()) soonest = Math.min(soonest, held.dueAt);
    this.#wakesAt = this.#asksForAll ? 0 : soonest;
    return Math.max(0, this.#wakesAt - performance.now());
  }

  #due(): Held[] {
    const now = performance.now();
    const asksForAll = this.#asksForAll;
    this.#asksForAll = false;
    const all = [...this.#held.values()];
    if (asksForAll) return all;
    if (!all.some((held) => held.dueAt <= now)) return [];
    return all.filter((held) => held.dueAt <= now + held.leaseMs / 12);
  }

  async #renew(due: Held[]): Promise<void> {
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
      // Often enough to be in time, however short the lease.
      const now = performance.now();
      for (const held of due) held.dueAt = now + Math.min(2000, held.leaseMs / 20);
      throw error;
    }
    due.forEach((held, i) => {
      const key = keyOf(held.claim);
      if (this.#held.get(key) !== held) return;
      if (answers[i] === "ANSWER_FENCED") {
        this.forget(key);
        this.onNews(key, "fenced");
        return;
      }
      if (answers[i] === "ANSWER_ACCEPTED" || answers[i] === "ANSWER_CANCEL_REQUESTED") {
        held.dueAt = asked + held.leaseMs / 3;
        held.lostAt = asked + held.leaseMs;
      } else {
        // While somebody holds the row nobody can take it back.
        held.dueAt = asked + BUSY_MS;
        held.lostAt = Math.max(held.lostAt, asked + STILL_OURS_MS);
      }
      clearTimeout(held.timer);
      held.timer = setTimeout(() => this.#overdue(key), held.lostAt - performance.now());
      if (answers[i] === "ANSWER_CANCEL_REQUESTED") this.onNews(key, "cancel_requested");
    });
  }

  /** Nobody renewed it in time. */
  #overdue(key: Key): void {
    // If the event loop was blocked, the answer to a renewal may be here and not yet read.
    setImmediate(() => {
      const held = this.#held.get(key);
      if (held === undefined || held.lostAt > performance.now() + 1) return;
      this.forget(key);
      this.onNews(key, "lost");
    });
  }
}
