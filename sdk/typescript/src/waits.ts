/**
 * Durable waits of a handler: sub-jobs, events and sleeps, remembered by name.
 *
 * Each wait is stored first. Then `Suspended` ends the attempt, and the job waits without a worker. The
 * handler runs again from the top, and meets its waits done.
 */

import { createHash } from "node:crypto";

import {
  InvalidInput,
  NondeterministicHandler,
  ServerError,
  SubJobsFailed,
  WaitTimeout,
} from "./errors.js";
import { decode, encode } from "./json.js";
import { checkOptions, type Names } from "./options.js";
import type { JobResult as JobRow, StoredWait, SubJob as SubJobMessage } from "./protocol.js";
import type { Run } from "./run.js";
import type { WaitCalls } from "./wait_calls.js";

/** A job to run as a sub-job. */
export interface SubJob {
  jobType: string;
  payload?: unknown;
  /** Higher first; the job type's default. */
  priority?: number;
  delayMs?: number;
  /** Earliest start. */
  runAt?: Date;
  uniqueKey?: string;
  uniqueForMs?: number;
  uniqueBy?: readonly string[];
  concurrencyKey?: string;
  tags?: readonly string[];
  maxRetries?: number;
}

/** An ended job that a handler came after, or ran as a sub-job. */
export interface JobResult {
  /** Undefined if the job was deleted. */
  id: string | undefined;
  jobType: string;
  /** Its name within the flow. */
  name: string | undefined;
  status: "completed" | "failed" | "cancelled" | "deleted";
  /** Null unless it completed. */
  result: unknown;
}

export interface RunAllOptions {
  /** What to do if sub-jobs do not complete: `throw` a SubJobsFailed, or `return` each JobResult. */
  failures?: "throw" | "return";
}

export interface EventOptions {
  /** The key of the event; none by default. */
  key?: string;
  /** Throws WaitTimeout after this time; never by default. */
  timeoutMs?: number;
  /** The name of the wait; made of event and key by default. */
  name?: string;
}

const KNOWN_JOB: Names<SubJob> = {
  jobType: true,
  payload: true,
  priority: true,
  delayMs: true,
  runAt: true,
  uniqueKey: true,
  uniqueForMs: true,
  uniqueBy: true,
  concurrencyKey: true,
  tags: true,
  maxRetries: true,
};
const KNOWN_RUN_ALL: Names<RunAllOptions> = { failures: true };
const KNOWN_EVENT: Names<EventOptions> = { key: true, timeoutMs: true, name: true };
const NAME_BYTES = 200;
const KEY_BYTES = 512;
const MOST_SUB_JOBS = 100_000;
const LONGEST_MS = 100 * 366 * 86_400_000;
// Of one call: well below the message limit of servers.
const MOST_JOBS = 1000;
const MOST_CHARACTERS = 500_000;
const MOST_NAMED = 10;
const OLDER = "the server is older than this worker and serves no waits: upgrade it";

/** A wait as the handler asks for it now. */
interface Wanted {
  kind: "sub_jobs" | "event" | "sleep";
  event?: string;
  key?: string;
  total?: number;
}

export class Waits {
  /** The events waited for without a name, each so often. */
  readonly #counts = new Map<string, number>();
  #stored: Promise<Map<string, StoredWait>> | undefined;

  /** `used`: the names of steps and waits of this attempt, which share one namespace. */
  constructor(
    private readonly run: Run,
    private readonly calls: WaitCalls,
    private readonly used: Set<string>,
  ) {}

  async sleep(name: string, ms: number): Promise<void> {
    checkText(name, "name", NAME_BYTES);
    const durationMs = duration(ms, "ms");
    await this.#enter(name, { kind: "sleep" });
    const { state } = await this.calls.begin(this.run, { name, kind: "sleep", durationMs });
    if (state === "WAIT_STATE_OPEN") throw this.run.suspend(name);
  }

  async event(event: string, options: EventOptions): Promise<unknown> {
    checkOptions(options, KNOWN_EVENT, "options of waitEvent");
    const { key = "", timeoutMs } = options;
    checkText(event, "event", NAME_BYTES);
    if (key !== "") checkText(key, "key", KEY_BYTES);
    const name = options.name ?? this.#eventName(event, key);
    const within = timeoutMs === undefined ? {} : { durationMs: duration(timeoutMs, "timeoutMs") };
    await this.#enter(name, { kind: "event", event, key });
    const wait = { name, kind: "event", event, key, ...within };
    const { state, result } = await this.calls.begin(this.run, wait);
    if (state === "WAIT_STATE_OPEN") throw this.run.suspend(name);
    if (state === "WAIT_STATE_TIMED_OUT") {
      const late = timeoutMs === undefined ? "in time" : `within ${timeoutMs} ms`;
      throw new WaitTimeout(`${textOf({ kind: "event", event, key })} did not come ${late}`);
    }
    return result === "" ? null : decode(result, `event ${event}`);
  }

  async runAll(name: string, jobs: readonly SubJob[], options: RunAllOptions): Promise<unknown[]> {
    checkOptions(options, KNOWN_RUN_ALL, "options of runAll");
    const { failures = "throw" } = options;
    if (failures !== "throw" && failures !== "return") {
      throw new InvalidInput("failures", 'must be "throw" or "return"');
    }
    if (!Array.isArray(jobs) || jobs.length > MOST_SUB_JOBS) {
      throw new InvalidInput("jobs", `must be a list of at most ${MOST_SUB_JOBS} jobs`);
    }
    const total = jobs.length;
    const stored = await this.#enter(name, { kind: "sub_jobs", total });
    if (stored < total) {
      for (const [offset, part] of chunks(jobs, stored)) {
        await this.calls.submit(this.run, { name, total, offset, jobs: part });
      }
      throw this.run.suspend(name);
    }
    const results: JobResult[] = [];
    while (results.length < total) {
      const page = await this.calls.results(this.run, results.length, name);
      if (page.length === 0 || page.some((row) => row.status === "open")) throw this.run.suspend(name);
      results.push(...page.map(resultOf));
    }
    if (failures === "return") return results;
    checkCompleted(name, results);
    return results.map((one) => one.result);
  }

  /** The next results of the jobs that this one came after. */
  async results(after: number): Promise<JobResult[]> {
    this.#check();
    return (await this.calls.results(this.run, after)).map(resultOf);
  }

  /** Uses a name; returns how many of its sub-jobs are stored. */
  async #enter(name: string, wanted: Wanted): Promise<number> {
    this.#check();
    checkText(name, "name", NAME_BYTES);
    if (this.used.has(name)) {
      throw new InvalidInput(
        `wait ${JSON.stringify(name)}`,
        "was used already in this attempt: names of steps and waits are unique in a job",
      );
    }
    this.used.add(name);
    const stored = await this.#read();
    const earlier = stored.get(name);
    if (earlier !== undefined) {
      checkSame(earlier, wanted);
      return earlier.stored ?? 0;
    }
    // A call without jobs stores nothing, so an earlier run may have passed it.
    if (wanted.total === 0) return 0;
    for (const other of stored.keys()) {
      if (!this.used.has(other)) {
        throw new NondeterministicHandler(
          `the handler asks for the wait ${JSON.stringify(name)}, but an earlier run asked for ` +
            `${JSON.stringify(other)} before: names and order of waits must be the same in every run`,
        );
      }
    }
    return 0;
  }

  #check(): void {
    if (this.run.suspension !== undefined) throw this.run.suspension;
    if (!this.run.assignment.canWait) throw new ServerError("UNIMPLEMENTED", OLDER);
  }

  #read(): Promise<Map<string, StoredWait>> {
    // A first attempt has no stored waits.
    this.#stored ??=
      this.run.claim.attempt === 1
        ? Promise.resolve(new Map())
        : this.calls.read(this.run).then((all) => new Map(all.map((one) => [one.name, one])));
    return this.#stored;
  }

  /** The name of a wait that has none: the same in every run of the handler. */
  #eventName(event: string, key: string): string {
    let name = key === "" ? event : `${event}:${key}`;
    if (Buffer.byteLength(name) > NAME_BYTES - 8) {
      name = `event:${createHash("sha256").update(name).digest("hex")}`;
    }
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count === 1 ? name : `${name}#${count}`;
  }
}

/** The jobs after the stored ones, in parts that one call may carry. */
function* chunks(jobs: readonly SubJob[], stored: number): Generator<[number, SubJobMessage[]]> {
  let [offset, part, characters] = [stored, [] as SubJobMessage[], 0];
  for (let i = stored; i < jobs.length; i++) {
    const message = written(jobs[i] as SubJob, `jobs[${i}]`);
    const size = message.payload?.length ?? 0;
    if (part.length > 0 && (part.length === MOST_JOBS || characters + size > MOST_CHARACTERS)) {
      yield [offset, part];
      [offset, part, characters] = [i, [], 0];
    }
    part.push(message);
    characters += size;
  }
  yield [offset, part];
}

function written(job: SubJob, field: string): SubJobMessage {
  const isObject = typeof job === "object" && job !== null && !Array.isArray(job);
  if (isObject) checkOptions(job, KNOWN_JOB, field);
  if (!isObject || typeof job.jobType !== "string") {
    throw new InvalidInput(field, 'must be a job, as in { jobType: "mail", payload: { user: 1 } }');
  }
  const options = {
    priority: job.priority,
    delay: job.delayMs === undefined ? undefined : job.delayMs / 1000,
    run_at: job.runAt?.toISOString(),
    unique_key: job.uniqueKey,
    unique_for: job.uniqueForMs === undefined ? undefined : job.uniqueForMs / 1000,
    unique_by: job.uniqueBy,
    concurrency_key: job.concurrencyKey,
    tags: job.tags,
    max_retries: job.maxRetries,
  };
  return {
    jobType: job.jobType,
    payload: job.payload === undefined ? "{}" : encode(job.payload, `${field}.payload`),
    options: encode(options, `${field}.options`),
  };
}

function resultOf(row: JobRow): JobResult {
  return {
    id: row.jobId || undefined,
    jobType: row.jobType,
    name: row.name || undefined,
    status: (row.status || "deleted") as JobResult["status"],
    result: row.result === undefined ? null : decode(row.result, `result of ${row.jobId}`),
  };
}

function checkCompleted(name: string, results: JobResult[]): void {
  const failed = results.filter((one) => one.status !== "completed");
  if (failed.length === 0) return;
  const named = failed.slice(0, MOST_NAMED).map((one) => `${one.id} (${one.status})`);
  const more = failed.length > MOST_NAMED ? ` and ${failed.length - MOST_NAMED} more` : "";
  throw new SubJobsFailed(
    `${failed.length} of ${results.length} sub-jobs of ${JSON.stringify(name)} did not complete: ` +
      named.join(", ") +
      more,
    failed,
  );
}

function checkSame({ name, kind, event, key, total }: StoredWait, wanted: Wanted): void {
  const earlier = { kind, event, key, total } as Wanted;
  if (textOf(earlier) === textOf(wanted)) return;
  throw new NondeterministicHandler(
    `the handler asks under the name ${JSON.stringify(name)} for ${textOf(wanted)}, but an earlier run ` +
      `asked for ${textOf(earlier)}: waits must be the same in every run`,
  );
}

function textOf({ kind, event, key, total }: Wanted): string {
  if (kind === "sleep") return "a sleep";
  if (kind === "sub_jobs") return `${total} sub-jobs`;
  return `event ${JSON.stringify(event)}${key ? ` with key ${JSON.stringify(key)}` : ""}`;
}

function checkText(text: string, field: string, most: number): void {
  const size = typeof text === "string" ? Buffer.byteLength(text) : 0;
  if (size < 1 || size > most || text.includes("\0")) {
    throw new InvalidInput(field, `must be a text of 1 to ${most} bytes`);
  }
}

function duration(ms: number, field: string): number {
  if (typeof ms !== "number" || Number.isNaN(ms)) {
    throw new InvalidInput(field, "must be a number of milliseconds");
  }
  if (ms > LONGEST_MS) {
    throw new InvalidInput(field, `must be at most ${LONGEST_MS} milliseconds (100 years), not ${ms}`);
  }
  // `until - Date.now()` is negative when a handler runs again after its sleep.
  return Math.round(Math.max(0, ms));
}
