/** Sends results in batches until each is accepted or fenced. */

import type { ThrottledWarnings } from "./throttled_warnings.js";
import { BUSY_MS } from "./claim.js";
import type { Connection } from "./connection.js";
import { isRefusal } from "./errors.js";
import { Loop } from "./loop.js";
import { refused } from "./outcome.js";
import type { Answer, Result } from "./protocol.js";

const MOST = 1000;
// Well below the message limit of servers.
const MOST_CHARACTERS = 500_000;
const CALL_MS = 10_000;

interface Pending {
  result: Result;
  onSettled: () => void;
}

/** Sends one batch at a time; results that arrive meanwhile go with the next. */
export class Completer extends Loop {
  readonly #pending: Pending[] = [];
  /** Results of the current batch that are answered and not sent again with it. */
  readonly #answered = new WeakSet<Pending>();
  #busy: Pending[] = [];
  #inFlight = 0;
  #onIdle: (() => void)[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    warnings: ThrottledWarnings,
    /** By lane: how many jobs this worker takes beyond its room now, with so many unsettled. */
    private readonly allowedAhead: (unsettled: number) => Record<string, number>,
  ) {
    super("results", warnings);
  }

  add(result: Result, onSettled: () => void): void {
    this.#pending.push({ result, onSettled });
    this.wake();
  }

  get backlog(): number {
    return this.#pending.length + this.#busy.length + this.#inFlight;
  }

  /** Resolves when all added results are settled. */
  idle(): Promise<void> {
    if (this.backlog === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  protected async once(): Promise<number> {
    this.#pending.push(...this.#busy.splice(0));
    if (this.#pending.length === 0) return Infinity;
    const batch = this.#take();
    this.#inFlight = batch.length;
    try {
      await this.#settle(batch);
    } catch (error) {
      // The result may be stored although the answer was lost: sending it again gives the same one.
      this.#pending.unshift(...batch.filter((one) => !this.#answered.has(one)));
      throw error;
    } finally {
      this.#inFlight = 0;
    }
    if (this.#pending.length > 0) return 0;
    if (this.#busy.length > 0) return BUSY_MS;
    for (const resolve of this.#onIdle.splice(0)) resolve();
    return Infinity;
  }

  #take(): Pending[] {
    let count = 0;
    let characters = 0;
    for (const { result } of this.#pending.slice(0, MOST)) {
      characters += sizeOf(result);
      if (count > 0 && characters > MOST_CHARACTERS) break;
      count += 1;
    }
    return this.#pending.splice(0, count);
  }

  async #settle(batch: Pending[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map((one) => one.result));
      batch.forEach((one, i) => this.#onAnswer(one, answers[i]));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (batch.length > 1) {
        // A refused result of one job must not fail the others.
        for (const one of batch) await this.#settle([one]);
        return;
      }
      for (const one of batch) await this.#settleRefused(one, error.message);
    }
  }

  async #settleRefused(one: Pending, reason: string): Promise<void> {
    this.warnings.log.error(
      `job ${one.result.claim?.jobId}: the server refused its result: ${reason}`,
    );
    try {
      one.result = refused(one.result, reason);
      const [answer] = await this.#send([one.result]);
      this.#onAnswer(one, answer);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The lease lapses without renewal, and the server takes the job back.
      this.#onAnswer(one, "ANSWER_FENCED");
    }
  }

  #onAnswer(one: Pending, answer: Answer | undefined): void {
    this.#answered.add(one);
    // A copy, because it goes with another batch.
    if (answer === undefined || answer === "ANSWER_UNSPECIFIED") this.#busy.push({ ...one });
    else one.onSettled();
  }

  async #send(results: Result[]): Promise<Answer[]> {
    const ahead = this.allowedAhead(this.backlog);
    const request = { workerId: this.workerId, results, ahead };
    return (await this.connection.call("reportResult", request, CALL_MS)).answers;
  }
}

function sizeOf({ finish, fail, cancel }: Result): number {
  const texts = [finish?.result, fail?.error?.message, fail?.error?.traceback, cancel?.result];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 100);
}
