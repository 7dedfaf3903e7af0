/** Calls about waits, sub-jobs and results, repeated until a server answers. */

import { type Backoff, delayAfter, pause } from "./backoff.js";
import { BUSY_MS, type Key, type StopSignal } from "./claim.js";
import type { Calls, Connection } from "./connection.js";
import { InvalidInput, ServerError, StaleAttempt, Stopped } from "./errors.js";
import type {
  BeginWaitRequest,
  BeginWaitResponse,
  JobResult,
  StoredWait,
  SubmitSubJobsRequest,
} from "./protocol.js";
import type { Run } from "./run.js";
import type { ThrottledWarnings } from "./throttled_warnings.js";

const CALL_MS = 20_000;
const BACKOFF: Backoff = { firstMs: 50, longestMs: 2000 };

type Method = "readWaits" | "beginWait" | "submitSubJobs" | "readResults";

export class WaitCalls {
  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    private readonly warnings: ThrottledWarnings,
    private readonly onStopSignal: (key: Key, signal: StopSignal) => void,
  ) {}

  async read(run: Run): Promise<StoredWait[]> {
    return (await this.#call(run, "readWaits", {})).waits;
  }

  begin(run: Run, wait: BeginWaitRequest): Promise<BeginWaitResponse> {
    return this.#call(run, "beginWait", wait);
  }

  async submit(run: Run, jobs: SubmitSubJobsRequest): Promise<void> {
    await this.#call(run, "submitSubJobs", jobs);
  }

  /** The next results of the sub-jobs of a wait, or of the jobs that this one came after. */
  async results(run: Run, after: number, wait?: string): Promise<JobResult[]> {
    const of = wait === undefined ? {} : { wait };
    return (await this.#call(run, "readResults", { after, ...of })).results;
  }

  async #call<M extends Method>(run: Run, method: M, given: Calls[M][0]): Promise<Calls[M][1]> {
    const request = { ...given, workerId: this.workerId, claim: run.claim };
    for (let failures = 0; ; ) {
      if (run.stopReason !== undefined) throw new Stopped(run.stopReason);
      if (run.hasEnded) throw new StaleAttempt("the attempt is over");
      try {
        const response = await this.connection.call(method, request, CALL_MS);
        this.warnings.resolved("waits");
        if (response.answer === "ANSWER_ACCEPTED") return response;
        this.#onAnswer(run, response.answer);
        failures = 0;
        await pause(BUSY_MS, run.signal);
      } catch (error) {
        if (!(error instanceof ServerError)) throw error;
        // A quota is full, or the state is wrong for now: a retry of the job may find it changed.
        if (error.code === "FAILED_PRECONDITION") throw error;
        if (error.isRefusal) throw invalid(error.message);
        // It may be stored although the answer was lost; asking again is safe.
        this.warnings.warn("waits", error);
        await pause(delayAfter(++failures, BACKOFF), run.signal);
      }
    }
  }

  #onAnswer(run: Run, answer: Calls[Method][1]["answer"]): void {
    if (answer === "ANSWER_FENCED") {
      this.onStopSignal(run.key, "fenced");
      throw new StaleAttempt(`attempt ${run.claim.attempt} of its job is over`);
    }
    if (answer === "ANSWER_CANCEL_REQUESTED") this.onStopSignal(run.key, "cancel_requested");
  }
}

/** The server's `field: rule`. */
function invalid(message: string): InvalidInput {
  const at = message.indexOf(": ");
  return at === -1 ? new InvalidInput("wait", message) : new InvalidInput(message.slice(0, at), message.slice(at + 2));
}
