/** Limits held for one call: first come, first served; only the first of a queue calls the server. */

import { AsyncLocalStorage } from "node:async_hooks";

import { Wake } from "./backoff.js";
import { BUSY_MS, type StopSignal } from "./claim.js";
import type { ThrottledWarnings } from "./throttled_warnings.js";
import type { Connection } from "./connection.js";
import { InvalidInput, ServerError, StaleAttempt, Stopped, isRefusal } from "./errors.js";
import type { Run } from "./run.js";

const FIRST_MS = 50;
const LONGEST_MS = 1000;
// Ask again at least this often: an operator may change a limit with a long rate period.
const LONGEST_RATE_MS = 5000;
const CALL_MS = 5000;

/** A call of `hold` around the current code. Tasks started in it may outlive it. */
interface Around {
  readonly run: Run;
  readonly names: readonly string[];
  readonly outer: Around | undefined;
  isOpen: boolean;
}

export class CallLimits {
  readonly #queues = new Map<string, Wake[]>();
  readonly #around = new AsyncLocalStorage<Around>();

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    private readonly warnings: ThrottledWarnings,
    private readonly onStopSignal: (key: string, signal: StopSignal) => void,
  ) {}

  /** Calls fn while the run holds one of each limit. */
  async hold<T>(run: Run, names: string | readonly string[], fn: () => T | Promise<T>): Promise<T> {
    const wanted = namesOf(names);
    let outer = this.#around.getStore();
    while (outer !== undefined && !outer.isOpen) outer = outer.outer;
    await this.#acquire(run, wanted, heldAround(outer, run));
    const call: Around = { run, names: wanted, outer, isOpen: true };
    try {
      return await this.#around.run(call, async () => fn());
    } finally {
      call.isOpen = false;
      await this.#release(run, wanted, 1);
    }
  }

  async #acquire(run: Run, names: string[], around: ReadonlyMap<string, number>): Promise<void> {
    const inside: Record<string, number> = {};
    for (const name of names) if (around.has(name)) inside[name] = around.get(name) as number;
    // Skip the queue: its callers may be waiting for limits that this run holds.
    if (around.size > 0 && (await this.#ask(run, names, inside)) === "granted") return;
    const turn = new Wake();
    const onStop = (): void => turn.set();
    run.signal.addEventListener("abort", onStop);
    const queued: string[] = [];
    try {
      for (const name of names) {
        const queue = this.#queues.get(name) ?? [];
        this.#queues.set(name, queue);
        queue.push(turn);
        queued.push(name);
        while (queue[0] !== turn) {
          if (run.stopReason !== undefined) throw new Stopped(run.stopReason);
          await turn.wait(Infinity);
        }
      }
      await this.#take(run, names, inside, turn);
    } finally {
      run.signal.removeEventListener("abort", onStop);
      for (const name of queued) this.#leave(name, turn);
    }
  }

  #leave(name: string, turn: Wake): void {
    const queue = this.#queues.get(name) ?? [];
    const at = queue.indexOf(turn);
    queue.splice(at, 1);
    if (queue.length === 0) this.#queues.delete(name);
    else if (at === 0) queue[0]?.set();
  }

  /** Asks until there is room: at once after a release in this process, otherwise regularly. */
  async #take(
    run: Run,
    names: string[],
    inside: Record<string, number>,
    turn: Wake,
  ): Promise<void> {
    let waitMs = FIRST_MS;
    for (;;) {
      const granted = await this.#ask(run, names, inside);
      if (granted === "granted") return;
      const delayMs = granted > 0 ? Math.min(granted, LONGEST_RATE_MS) : waitMs;
      waitMs = Math.min(waitMs * 1.5, LONGEST_MS);
      await turn.wait(delayMs * (1 + 0.2 * Math.random()));
    }
  }

  /** Granted, or the time to wait; 0: not known. A stopped run releases its grant. */
  async #ask(
    run: Run,
    names: string[],
    inside: Record<string, number>,
  ): Promise<"granted" | number> {
    if (run.stopReason !== undefined) throw new Stopped(run.stopReason);
    const granted = await run.inTurn(() => this.#granted(run, names, inside));
    // The signal may have been aborted during the call.
    const stopReason = run.stopReason as Run["stopReason"];
    if (stopReason !== undefined) {
      await this.#release(run, names, granted === "granted" ? 1 : 0);
      throw new Stopped(stopReason);
    }
    return granted;
  }

  async #granted(
    run: Run,
    names: string[],
    inside: Record<string, number>,
  ): Promise<"granted" | number> {
    const wants: Record<string, number> = {};
    for (const name of names) wants[name] = (run.limits.get(name) ?? 0) + 1;
    const request = { workerId: this.workerId, claim: run.claim, wants, inside };
    let answer;
    try {
      answer = await this.connection.call("acquireLimits", request, CALL_MS);
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      if (error.isRefusal) throw new InvalidInput("limit", error.message);
      // The grant may be stored although the answer was lost; asking again is safe.
      this.warnings.warn("limits", error);
      return 0;
    }
    this.warnings.resolved("limits");
    if (answer.answer === "ANSWER_FENCED") {
      this.onStopSignal(run.key, "fenced");
      throw new StaleAttempt(`attempt ${run.claim.attempt} of its job is over`);
    }
    if (answer.answer === "ANSWER_CANCEL_REQUESTED") {
      this.onStopSignal(run.key, "cancel_requested");
      return 0;
    }
    if (answer.answer === "ANSWER_UNSPECIFIED") return BUSY_MS;
    if (answer.isFull) return answer.waitMs;
    for (const name of names) run.limits.set(name, wants[name] as number);
    return "granted";
  }

  async #release(run: Run, names: string[], fewer: number): Promise<void> {
    await run.inTurn(async () => {
      const keeps: Record<string, number> = {};
      for (const name of names) {
        keeps[name] = Math.max(0, (run.limits.get(name) ?? 0) - fewer);
        run.limits.set(name, keeps[name]);
      }
      const request = { workerId: this.workerId, claim: run.claim, keeps };
      // The end of the lease releases the limits at the latest.
      for (let waitMs = FIRST_MS; !run.hasEnded && run.stopReason !== "fenced";) {
        try {
          const { answer } = await this.connection.call("releaseLimits", request, CALL_MS);
          if (answer !== "ANSWER_UNSPECIFIED") return;
        } catch (error) {
          if (isRefusal(error)) return;
          this.warnings.warn("limits", error);
        }
        await new Wake().wait(waitMs);
        waitMs = Math.min(waitMs * 2, LONGEST_MS);
      }
    });
    for (const name of names) this.#queues.get(name)?.[0]?.set();
  }
}

/** The number of holds of each limit in open calls of the run. */
function heldAround(innermost: Around | undefined, run: Run): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (let one = innermost; one !== undefined; one = one.outer) {
    if (!one.isOpen || one.run !== run) continue;
    for (const name of one.names) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function namesOf(names: string | readonly string[]): string[] {
  const all = typeof names === "string" ? [names] : [...names];
  if (all.length === 0 || !all.every((name) => typeof name === "string" && name !== "")) {
    throw new InvalidInput("limit", "must be the name of a limit, or several");
  }
  return [...new Set(all)].sort();
}
