/** Sends progress, checkpoints, steps and log lines of all jobs together. */

import type { ThrottledWarnings } from "./throttled_warnings.js";
import { BUSY_MS, type Claim, type Key, type StopSignal, keyOf } from "./claim.js";
import type { Connection } from "./connection.js";
import { StaleAttempt, isRefusal } from "./errors.js";
import { Loop } from "./loop.js";
import type { Progressed, Step, Update } from "./protocol.js";

const INTERVAL_MS = 500;
const CALL_MS = 10_000;
const MOST_UPDATES = 1000;
const MOST_LINES = 500;
// Well below the message limit of servers.
const MOST_CHARACTERS = 500_000;
const MOST_LINE_CHARACTERS = 250_000;

/** The progress and checkpoint of an attempt; fields that are not set stay unchanged. */
export type Report = Pick<Update, "stage" | "done" | "total" | "message" | "checkpoint">;

interface Line {
  number: number;
  level: string;
  message: string;
  at: number;
}

interface Waiter {
  resolve: () => void;
  reject: (error: Error) => void;
}

interface PendingStep {
  step: Step;
  resolve: (result: string) => void;
  reject: (error: Error) => void;
}

/** The unsent updates of one attempt, and the callers that wait for them. */
interface Pending {
  claim: Claim;
  report: Report;
  /** Whether a report was made: an empty one counts as progress too. */
  hasProgress: boolean;
  steps: PendingStep[];
  lines: Line[];
  waiters: Waiter[];
  isDropped?: boolean;
}

/** Sends the newest progress and all log lines; at once if a caller waits, otherwise regularly. */
export class Reporter extends Loop {
  readonly #pending = new Map<Key, Pending>();
  #inFlight: Pending[] = [];
  #busy: Pending[] = [];
  #dueAt = Infinity;

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    warnings: ThrottledWarnings,
    private readonly onStopSignal: (key: Key, signal: StopSignal) => void,
  ) {
    super("progress", warnings);
  }

  report(claim: Claim, report: Report): void {
    const update = this.#of(claim);
    update.report = { ...update.report, ...report };
    update.hasProgress = true;
    this.#scheduleIn(INTERVAL_MS);
  }

  line(claim: Claim, number: number, level: string, message: string): void {
    this.#of(claim).lines.push({ number, level, message, at: performance.now() });
    this.#scheduleIn(INTERVAL_MS);
  }

  /** The step's result as every later attempt will read it. */
  keep(claim: Claim, step: Step): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#of(claim).steps.push({ step, resolve, reject });
      this.#scheduleIn(0);
    });
  }

  /** Resolves when all earlier reports of this attempt are stored. */
  flush(claim: Claim): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#of(claim).waiters.push({ resolve, reject });
      this.#scheduleIn(0);
    });
  }

  /** Discards the updates of an ended attempt. */
  drop(key: Key): void {
    const all = [
      this.#pending.get(key),
      ...this.#inFlight.filter((one) => keyOf(one.claim) === key),
    ];
    this.#pending.delete(key);
    for (const update of all) {
      if (update === undefined) continue;
      update.isDropped = true;
      rejectAll(update, new StaleAttempt("the attempt is over"));
    }
  }

  override async stop(): Promise<void> {
    await super.stop();
    for (const key of [...this.#pending.keys()]) this.drop(key);
  }

  #of(claim: Claim): Pending {
    const key = keyOf(claim);
    let update = this.#pending.get(key);
    if (update === undefined) {
      update = { claim, report: {}, hasProgress: false, steps: [], lines: [], waiters: [] };
      this.#pending.set(key, update);
    }
    return update;
  }

  #scheduleIn(ms: number): void {
    const dueAt = performance.now() + ms;
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    this.wake();
  }

  protected async once(): Promise<number> {
    const left = this.#dueAt - performance.now();
    if (left > 0) return left;
    this.#dueAt = Infinity;
    const batch = (this.#inFlight = this.#take());
    try {
      await this.#send(batch);
    } catch (error) {
      for (const update of batch) if (!update.isDropped) this.#putBack(update);
      this.#scheduleIn(0);
      throw error;
    } finally {
      this.#inFlight = [];
    }
    if ([...this.#pending.values()].some((update) => update.waiters.length || update.steps.length)) {
      this.#scheduleIn(0);
    }
    if (this.#busy.length > 0) {
      for (const update of this.#busy.splice(0)) this.#putBack(update);
      this.#scheduleIn(BUSY_MS);
    } else if (this.#pending.size > 0) {
      this.#scheduleIn(INTERVAL_MS);
    }
    return Math.max(0, this.#dueAt - performance.now());
  }

  /** Takes the updates for one call; the rest stays for the next. */
  #take(): Pending[] {
    const batch: Pending[] = [];
    let characters = 0;
    for (const [key, update] of this.#pending) {
      if (batch.length === MOST_UPDATES || characters > MOST_CHARACTERS) break;
      this.#pending.delete(key);
      const rest = cut(update);
      characters += sizeOf(update);
      // Callers that wait for all of it wait for the rest.
      if (rest) this.#pending.set(key, rest);
      batch.push(update);
    }
    return batch;
  }

  #putBack(older: Pending): void {
    const key = keyOf(older.claim);
    const newer = this.#pending.get(key);
    if (newer === undefined) {
      this.#pending.set(key, older);
      return;
    }
    newer.report = { ...older.report, ...newer.report };
    newer.hasProgress ||= older.hasProgress;
    newer.steps.unshift(...older.steps);
    newer.lines.unshift(...older.lines);
    newer.waiters.unshift(...older.waiters);
  }

  async #send(batch: Pending[]): Promise<void> {
    const sent = batch.filter(hasContent);
    for (const update of batch) {
      if (!hasContent(update)) update.waiters.splice(0).forEach((w) => w.resolve());
    }
    if (sent.length === 0) return;
    let progressed: Progressed[];
    try {
      const request = { workerId: this.workerId, updates: sent.map(asUpdate) };
      progressed = (await this.connection.call("reportProgress", request, CALL_MS)).progressed;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (sent.length > 1) {
        // A refused update of one job must not fail the others.
        for (const update of sent) {
          await this.#send([update]);
          empty(update);
        }
        return;
      }
      this.warnings.warn(this.name, error);
      for (const update of sent) rejectAll(update, error);
      return;
    }
    sent.forEach((update, i) => this.#onAnswer(update, progressed[i]));
  }

  #onAnswer(update: Pending, progressed: Progressed | undefined): void {
    if (progressed === undefined || progressed.answer === "ANSWER_UNSPECIFIED") {
      if (!update.isDropped) this.#busy.push({ ...update });
      return;
    }
    if (progressed.answer === "ANSWER_FENCED") {
      rejectAll(update, new StaleAttempt(`attempt ${update.claim.attempt} of its job is over`));
      this.onStopSignal(keyOf(update.claim), "fenced");
      return;
    }
    for (const { step, resolve } of update.steps) {
      const kept = progressed.steps.find((one) => one.name === step.name);
      resolve(kept?.result ?? step.result ?? "null");
    }
    for (const { resolve } of update.waiters) resolve();
    if (progressed.answer === "ANSWER_CANCEL_REQUESTED") {
      this.onStopSignal(keyOf(update.claim), "cancel_requested");
    }
  }
}

function hasContent(update: Pending): boolean {
  return update.hasProgress || update.steps.length + update.lines.length > 0;
}

function asUpdate({ claim, report, steps, lines }: Pending): Update {
  const now = performance.now();
  return {
    claim,
    ...report,
    steps: steps.map((one) => one.step),
    lines: lines.map(({ number, level, message, at }) => ({
      number,
      level,
      message,
      ageMs: Math.round(now - at),
    })),
  };
}

function rejectAll(update: Pending, error: Error): void {
  for (const { reject } of [...update.steps, ...update.waiters]) reject(error);
}

/** Empties a stored update, so that putting it back does not send it again. */
function empty(update: Pending): void {
  Object.assign(update, { report: {}, hasProgress: false, steps: [], lines: [], waiters: [] });
}

/** Splits off the lines that are too many for one call, with the callers that wait. */
function cut(update: Pending): Pending | undefined {
  let characters = 0;
  const fit = update.lines.findIndex(
    ({ message }, i) => i === MOST_LINES || (characters += message.length) > MOST_LINE_CHARACTERS,
  );
  if (fit === -1) return undefined;
  const { claim, waiters } = update;
  const lines = update.lines.splice(fit);
  update.waiters = [];
  return { claim, report: {}, hasProgress: false, steps: [], lines, waiters };
}

function sizeOf({ report, steps, lines }: Pending): number {
  const sum = (texts: (string | undefined)[]): number =>
    texts.reduce((all, text) => all + (text?.length ?? 0) + 50, 0);
  return (
    sum([report.checkpoint, report.message]) +
    sum(steps.map((one) => one.step.result)) +
    sum(lines.map((line) => line.message))
  );
}
