/** Sends results in batches, again and again until each is accepted or fenced. */

import type { Complaints } from "./complaints.js";
import { BUSY_MS } from "./claim.js";
import type { Connection } from "./connection.js";
import { isRefusal } from "./errors.js";
import { Loop } from "./loop.js";
import { refused } from "./outcome.js";
import type { Answer, Result } from "./protocol.js";

const MOST = 1000;
// Well below what a server takes in one message.
const MOST_CHARACTERS = 500_000;
const CALL_MS = 10_000;

interface Pending {
  result: Result;
  onSettled: () => void;
}

/** One batch is on its way at a time; what ends meanwhile goes with the next. */
export class Completer extends Loop {
  readonly #pending: Pending[] = [];
  /** Of the batch on its way, those that are not to be sent again with it. */
  readonly #answered = new WeakSet<Pending>();
  #busy: Pending[] = [];
  #inFlight = 0;
  #onIdle: (() => void)[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    complaints: Complaints,
  ) {
    super("results", complaints);
  }

  add(result: Result, onSettled: () => void): void {
    this.#pending.push({ result, onSettled });
    this.wake();
  }

  get backlog(): number {
    return this.#pending.length + this.#busy.length + this.#inFlight;
  }

  /** Resolves when all that was added is settled. */
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
      // The answer may be lost though the write was not: saying it again is answered alike.
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
      batch.forEach((one, i) => this.#tell(one, answers[i]));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (batch.length > 1) {
        // What the server will not take of one job must not take the others with it.
        for (const one of batch) await this.#settle([one]);
        return;
      }
      for (const one of batch) await this.#settleRefused(one, error.message);
    }
  }

  async #settleRefused(one: Pending, why: string): Promise<void> {
    this.complaints.log.error(
      `job ${one.result.claim?.jobId}: the server refused its result: ${why}`,
    );
    try {
      one.result = refused(one.result, why);
      const [answer] = await this.#send([one.result]);
      this.#tell(one, answer);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Once nobody renews its lease the job is taken back: none stays running.
      this.#tell(one, "ANSWER_FENCED");
    }
  }

  #tell(one: Pending, answer: Answer | undefined): void {
    this.#answered.add(one);
    // A copy: another batch will be about it.
    if (answer === undefined || answer === "ANSWER_UNSPECIFIED") this.#busy.push({ ...one });
    else one.onSettled();
  }

  async #send(results: Result[]): Promise<Answer[]> {
    const request = { workerId: this.workerId, results };
    return (await this.connection.call("reportResult", request, CALL_MS)).answers;
  }
}

function sizeOf({ finish, fail, cancel }: Result): number {
  const texts = [finish?.result, fail?.error?.message, fail?.error?.traceback, cancel?.result];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 100);
}
