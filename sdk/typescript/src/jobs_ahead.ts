/** Jobs that a server sends before there is room for them, while handlers end at once. */

import { after } from "./backoff.js";
import type { Run } from "./run.js";

/** No more jobs are allowed ahead than end within this time. */
const AHEAD_MS = 50;
const MOST = 1000;
/** The most that a server is allowed to send, with jobs whose results are under way. */
const MOST_SENT = 2000;
/** A call with results may name as many lanes. */
const MOST_LANES = 100;
/** So many handlers of a lane must have ended at once, one after the other. */
const ENOUGH = 200;
/** Jobs that have waited this long go back to the queue. */
const KEEP_MS = 500;
/** The time without jobs ahead after some went back, doubled each time. */
const PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 300_000;
/** Handlers that never wait let the event loop go on after this time. */
const SLICE_MS = 10;

/** The measured time of the handlers of one lane that end at once. */
class Pace {
  inARow = 0;
  eachMs = 0;
  pausedUntil = 0;
  #pauseMs = PAUSE_MS;

  note(count: number, tookMs: number): void {
    const eachMs = tookMs / count;
    // Slower ones count at once, quicker ones by and by.
    this.eachMs = Math.max(eachMs, 0.7 * this.eachMs + 0.3 * eachMs);
    this.inARow += count;
  }

  pause(): void {
    this.inARow = 0;
    this.pausedUntil = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * this.#pauseMs);
  }
}

/** Handlers called in one turn of the event loop. */
interface Turn {
  began: number;
  open: Set<Run>;
  ended: Map<string, number>;
}

/** Counts running handlers; starts waiting jobs in order as there is room. */
export class JobsAhead {
  readonly #paces = new Map<string, Pace>();
  readonly #running = new Set<Run>();
  /** Running handlers that have waited. */
  readonly #slow = new Set<Run>();
  /** Running handlers by lane; every lane that has had jobs is in it. */
  readonly #byLane = new Map<string, number>();
  readonly #waiting: { run: Run; since: number }[] = [];
  #turn: Turn | undefined;
  #isDue = false;
  #stopTimer: () => void = () => {};

  constructor(
    private readonly room: () => number,
    private readonly begin: (run: Run) => void,
    private readonly giveBack: (run: Run) => void,
  ) {}

  /**
   * By lane: the most jobs that may wait here now. The server still counts `unsettled` jobs, which
   * take no room here: they are added as far as the jobs would not have to go back if all came.
   */
  allowed(unsettled: number): Record<string, number> {
    const room = this.room();
    if (room < 1 || 2 * this.#slow.size > room) return {};
    const found: [string, number][] = [];
    const now = performance.now();
    for (const [lane, pace] of this.#paces) {
      if (pace.inARow < ENOUGH || now < pace.pausedUntil) continue;
      const eachMs = Math.max(pace.eachMs, 1e-3);
      const most = Math.min(MOST, Math.max(1, Math.floor(AHEAD_MS / eachMs)));
      const soon = Math.max(most, Math.floor(KEEP_MS / 2 / eachMs));
      found.push([lane, Math.min(most + unsettled, MOST_SENT, soon)]);
    }
    if (found.length > MOST_LANES) found.sort(([, a], [, b]) => b - a).length = MOST_LANES;
    return Object.fromEntries(found);
  }

  /** Takes a job that may wait for room. */
  put(run: Run): void {
    this.#waiting.push({ run, since: performance.now() });
    if (this.#waiting.length === 1) this.#expectRoom();
    this.#feedSoon();
  }

  /** Removes a job that still waits. */
  drop(run: Run): boolean {
    const at = this.#waiting.findIndex((one) => one.run === run);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    return true;
  }

  /** Gives all waiting jobs back: none of their handlers was called. */
  returnAll(): void {
    this.#stopTimer();
    for (const { run } of [...this.#waiting]) this.giveBack(run);
  }

  /** A handler is about to be called. */
  began(run: Run): void {
    const lane = run.assignment.lane;
    this.#running.add(run);
    this.#byLane.set(lane, (this.#byLane.get(lane) ?? 0) + 1);
    if (this.#turn === undefined) {
      this.#turn = { began: performance.now(), open: new Set(), ended: new Map() };
      setImmediate(() => this.#endTurn());
    }
    this.#turn.open.add(run);
  }

  /** The handler has returned, or was abandoned. */
  ended(run: Run): void {
    if (!this.#running.delete(run)) return;
    const lane = run.assignment.lane;
    this.#byLane.set(lane, (this.#byLane.get(lane) ?? 1) - 1);
    this.#slow.delete(run);
    const turn = this.#turn;
    if (turn?.open.delete(run)) turn.ended.set(lane, (turn.ended.get(lane) ?? 0) + 1);
    this.#feedSoon();
  }

  /** Handlers that are still open now have waited. */
  #endTurn(): void {
    const turn = this.#turn;
    if (turn === undefined) return;
    this.#turn = undefined;
    const tookMs = performance.now() - turn.began;
    for (const [lane, count] of turn.ended) this.#pace(lane).note(count, tookMs);
    for (const run of turn.open) {
      this.#slow.add(run);
      this.#pace(run.assignment.lane).inARow = 0;
    }
  }

  #pace(lane: string): Pace {
    let pace = this.#paces.get(lane);
    if (pace === undefined) this.#paces.set(lane, (pace = new Pace()));
    return pace;
  }

  /** Starts jobs after the handlers that end now: many of them end together. */
  #feedSoon(): void {
    if (this.#waiting.length === 0 || this.#isDue) return;
    this.#isDue = true;
    const isLong = this.#turn !== undefined && performance.now() - this.#turn.began > SLICE_MS;
    if (isLong) setImmediate(() => this.#feed());
    else queueMicrotask(() => this.#feed());
  }

  #feed(): void {
    this.#isDue = false;
    const [first] = this.#waiting;
    // After a pause of this process, before its timers: leases may have lapsed.
    if (first !== undefined && performance.now() - first.since >= KEEP_MS) return this.#returnLate();
    let count = 0;
    let left = this.room() - this.#running.size;
    for (const { run } of this.#waiting) {
      if (left - this.#idleOthers(run.assignment.lane) < 1) break;
      left -= 1;
      count += 1;
    }
    if (count === 0) return;
    const next = this.#waiting.splice(0, count);
    this.#expectRoom();
    for (const { run } of next) this.begin(run);
  }

  /** Other lanes without a running handler: each keeps a place. */
  #idleOthers(lane: string): number {
    let count = 0;
    for (const [other, running] of this.#byLane) if (other !== lane && running === 0) count += 1;
    return count;
  }

  #expectRoom(): void {
    this.#stopTimer();
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#stopTimer = after(first.since + KEEP_MS - performance.now(), () => this.#returnLate());
  }

  #returnLate(): void {
    const lanes = new Set(this.#waiting.map(({ run }) => run.assignment.lane));
    for (const lane of lanes) this.#pace(lane).pause();
    this.returnAll();
  }
}
