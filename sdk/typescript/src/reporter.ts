/** Sends progress, checkpoints, steps and log lines of all jobs together. */

import type { Complaints } from "./complaints.js";
import { BUSY_MS, type Claim, type Key, type News, keyOf } from "./claim.js";
import type { Connection } from "./connection.js";
import { StaleAttempt, isRefusal } from "./errors.js";
import { Loop } from "./loop.js";
import type { Progressed, Step, Update } from "./protocol.js";

const INTERVAL_MS = 500;
const CALL_MS = 10_000;
const MOST_UPDATES = 1000;
const MOST_LINES = 500;
// Well below what a server takes in one message.
const MOST_CHARACTERS = 500_000;
const MOST_LINE_CHARACTERS = 250_000;

/** How far an attempt is, and what it wants remembered; what is not set stays as it is. */
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

interface Keeping {
  step: Step;
  resolve: (result: string) => void;
  reject: (error: Error) => void;
}

/** What is to be said of one attempt, and who waits until it is stored. */
interface Pending {
  claim: Claim;
  report: Report;
  /** Reported at all: an empty report counts as progress too. */
  isMoved: boolean;
  steps: Keeping[];
  lines: Line[];
  waiters: Waiter[];
  isOver?: boolean;
}

/** The newest progress wins, log lines all go; at once if somebody waits, else now and then. */
export class Reporter extends Loop {
  readonly #pending = new Map<Key, Pending>();
  #onItsWay: Pending[] = [];
  #busy: Pending[] = [];
  #dueAt = Infinity;

  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    complaints: Complaints,
    private readonly onNews: (key: Key, news: News) => void,
  ) {
    super("progress", complaints);
  }

  report(claim: Claim, report: Report): void {
    const news = this.#of(claim);
    news.report = { ...news.report, ...report };
    news.isMoved = true;
    this.#beDueIn(INTERVAL_MS);
  }

  line(claim: Claim, number: number, level: string, message: string): void {
    this.#of(claim).lines.push({ number, level, message, at: performance.now() });
    this.#beDueIn(INTERVAL_MS);
  }

  /** The step's result as every later attempt will read it. */
  keep(claim: Claim, step: Step): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#of(claim).steps.push({ step, resolve, reject });
      this.#beDueIn(0);
    });
  }

  /** Resolves when all that was reported of this attempt so far is stored. */
  flush(claim: Claim): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#of(claim).waiters.push({ resolve, reject });
      this.#beDueIn(0);
    });
  }

  /** Nothing more will be stored of this attempt. */
  drop(key: Key): void {
    const all = [
      this.#pending.get(key),
      ...this.#onItsWay.filter((one) => keyOf(one.claim) === key),
    ];
    this.#pending.delete(key);
    for (const news of all) {
      if (news === undefined) continue;
      news.isOver = true;
      letGo(news, new StaleAttempt("the attempt is over"));
    }
  }

  override async stop(): Promise<void> {
    await super.stop();
    for (const key of [...this.#pending.keys()]) this.drop(key);
  }

  #of(claim: Claim): Pending {
    const key = keyOf(claim);
    let news = this.#pending.get(key);
    if (news === undefined) {
      news = { claim, report: {}, isMoved: false, steps: [], lines: [], waiters: [] };
      this.#pending.set(key, news);
    }
    return news;
  }

  #beDueIn(ms: number): void {
    const dueAt = performance.now() + ms;
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    this.wake();
  }

  protected async once(): Promise<number> {
    const left = this.#dueAt - performance.now();
    if (left > 0) return left;
    this.#dueAt = Infinity;
    const batch = (this.#onItsWay = this.#take());
    try {
      await this.#send(batch);
    } catch (error) {
      for (const news of batch) if (!news.isOver) this.#putBack(news);
      this.#beDueIn(0);
      throw error;
    } finally {
      this.#onItsWay = [];
    }
    if ([...this.#pending.values()].some((news) => news.waiters.length || news.steps.length)) {
      this.#beDueIn(0);
    }
    if (this.#busy.length > 0) {
      for (const news of this.#busy.splice(0)) this.#putBack(news);
      this.#beDueIn(BUSY_MS);
    } else if (this.#pending.size > 0) {
      this.#beDueIn(INTERVAL_MS);
    }
    return Math.max(0, this.#dueAt - performance.now());
  }

  /** What goes with one call; the rest stays for the next. */
  #take(): Pending[] {
    const batch: Pending[] = [];
    let characters = 0;
    for (const [key, news] of this.#pending) {
      if (batch.length === MOST_UPDATES || characters > MOST_CHARACTERS) break;
      this.#pending.delete(key);
      const rest = cut(news);
      characters += sizeOf(news);
      // Who waits for all of it waits for the rest.
      if (rest) this.#pending.set(key, rest);
      batch.push(news);
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
    newer.isMoved ||= older.isMoved;
    newer.steps.unshift(...older.steps);
    newer.lines.unshift(...older.lines);
    newer.waiters.unshift(...older.waiters);
  }

  async #send(batch: Pending[]): Promise<void> {
    const said = batch.filter(isSaid);
    for (const news of batch) if (!isSaid(news)) news.waiters.splice(0).forEach((w) => w.resolve());
    if (said.length === 0) return;
    let progressed: Progressed[];
    try {
      const request = { workerId: this.workerId, updates: said.map(asUpdate) };
      progressed = (await this.connection.call("reportProgress", request, CALL_MS)).progressed;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (said.length > 1) {
        // What the server will not take of one job must not take the others with it.
        for (const news of said) {
          await this.#send([news]);
          empty(news);
        }
        return;
      }
      this.complaints.tell(this.name, error);
      for (const news of said) letGo(news, error);
      return;
    }
    said.forEach((news, i) => this.#tell(news, progressed[i]));
  }

  #tell(news: Pending, progressed: Progressed | undefined): void {
    if (progressed === undefined || progressed.answer === "ANSWER_UNSPECIFIED") {
      if (!news.isOver) this.#busy.push({ ...news });
      return;
    }
    if (progressed.answer === "ANSWER_FENCED") {
      letGo(news, new StaleAttempt(`attempt ${news.claim.attempt} of its job is over`));
      this.onNews(keyOf(news.claim), "fenced");
      return;
    }
    for (const { step, resolve } of news.steps) {
      const kept = progressed.steps.find((one) => one.name === step.name);
      resolve(kept?.result ?? step.result ?? "null");
    }
    for (const { resolve } of news.waiters) resolve();
    if (progressed.answer === "ANSWER_CANCEL_REQUESTED") {
      this.onNews(keyOf(news.claim), "cancel_requested");
    }
  }
}

function isSaid(news: Pending): boolean {
  return news.isMoved || news.steps.length + news.lines.length > 0;
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

function letGo(news: Pending, error: Error): void {
  for (const { reject } of [...news.steps, ...news.waiters]) reject(error);
}

/** It is stored: putting it back must not send it again. */
function empty(news: Pending): void {
  Object.assign(news, { report: {}, isMoved: false, steps: [], lines: [], waiters: [] });
}

/** Takes the lines that are too many for one call, and whoever waits for them, out of it. */
function cut(news: Pending): Pending | undefined {
  let characters = 0;
  const fit = news.lines.findIndex(
    ({ message }, i) => i === MOST_LINES || (characters += message.length) > MOST_LINE_CHARACTERS,
  );
  if (fit === -1) return undefined;
  const { claim, waiters } = news;
  const lines = news.lines.splice(fit);
  news.waiters = [];
  return { claim, report: {}, isMoved: false, steps: [], lines, waiters };
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
