/** A client of the HTTP API: submits jobs, reads and follows them, and acts on them. */

import type {
  ApprovalRequest,
  CancelRequest,
  ChangedFlow,
  EventDelivery,
  Explanation,
  Flow,
  FlowCancelRequest,
  FlowGraph,
  FlowRequest,
  Job,
  JobDetail,
  JobRequest,
  NewEvent,
  Rejection,
  SubmittedFlow,
  SubmittedJob,
} from "./models.js";
import type { Operations } from "../_generated/api.js";
import { checkJson } from "../json.js";
import { type Names, checkOptions } from "../options.js";
import { Deadline } from "./deadline.js";
import { FlowFailed, JobFailed, ServerUnreachable } from "./errors.js";
import { type FlowEvent, flowEvents } from "./flow_events.js";
import { type FlowFilter, FlowList } from "./flow_list.js";
import {
  type ChangeOptions,
  type ClientOptions,
  HttpConnection,
  type RequestOptions,
} from "./http_connection.js";
import { type JobEvent, type WatchOptions, hasEnded, jobEvents } from "./job_events.js";
import { type JobFilter, JobList } from "./job_list.js";

export interface WaitOptions extends RequestOptions {
  /** Throws a DOMException with the name TimeoutError after this time; by default never. */
  timeoutMs?: number | undefined;
}

/** The page of a flow's jobs. */
export type FlowPosition = NonNullable<Operations["get_flow"]["query"]>;

const KNOWN: Names<RequestOptions> = { signal: true };
const KNOWN_CHANGE: Names<ChangeOptions> = { ...KNOWN, idempotencyKey: true };
const KNOWN_WATCH: Names<WatchOptions> = { ...KNOWN, lastEventId: true };
const KNOWN_WAIT: Names<WaitOptions> = { ...KNOWN, timeoutMs: true };
// A wait with the timeout 0 still reads the job once.
const ONE_LOOK_MS = 1000;

export class Client {
  readonly #connection: HttpConnection;

  constructor(options: ClientOptions = {}) {
    this.#connection = new HttpConnection(options);
  }

  /** Submits a job. If a live job has its `unique_key`, returns that one, marked `duplicate`. */
  async submit(job: JobRequest, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of submit");
    checkPayload(job, "payload");
    return this.#connection.call("submit_job", { ...options, body: job });
  }

  /** Submits up to 1,000 jobs, all or none; results come in the order given. */
  async submitMany(jobs: JobRequest[], options: ChangeOptions = {}): Promise<SubmittedJob[]> {
    checkOptions(options, KNOWN_CHANGE, "options of submitMany");
    jobs.forEach((job, i) => checkPayload(job, `jobs[${i}].payload`));
    const { items } = await this.#connection.call("submit_jobs", { ...options, body: { jobs } });
    return items;
  }

  /** Returns one job with its newest attempts. */
  async get(id: string, options: RequestOptions = {}): Promise<JobDetail> {
    checkOptions(options, KNOWN, "options of get");
    return this.#connection.call("get_job", { ...options, id });
  }

  /** Lists jobs, newest first: `for await` fetches page after page, `page` fetches one. */
  list(filter: JobFilter = {}, options: RequestOptions = {}): JobList {
    checkOptions(options, KNOWN, "options of list");
    return new JobList(this.#connection, filter, options);
  }

  /** Returns every reason why a job is not running, and an estimate of its start. */
  async explain(id: string, options: RequestOptions = {}): Promise<Explanation> {
    checkOptions(options, KNOWN, "options of explain");
    return this.#connection.call("explain_job", { ...options, id });
  }

  /** Cancels a waiting job at once, or asks the worker of a running job to stop it. */
  async cancel(id: string, request: CancelRequest = {}, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of cancel");
    return this.#connection.call("cancel_job", { ...options, id, body: request });
  }

  /** Approves a job; with the `seal` of `get`, only if the job has not changed since. */
  async approve(id: string, request: ApprovalRequest = {}, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of approve");
    return this.#connection.call("approve_job", { ...options, id, body: request });
  }

  /** Rejects a job that awaits approval; it is cancelled. */
  async reject(id: string, request: Rejection, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of reject");
    return this.#connection.call("reject_job", { ...options, id, body: request });
  }

  /** Queues a failed or cancelled job again, with a new retry budget. */
  async retry(id: string, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of retry");
    return this.#connection.call("retry_job", { ...options, id });
  }

  /** Makes a job due that waits for a time: delayed, snoozed, backing off or asleep. */
  async runNow(id: string, options: ChangeOptions = {}): Promise<Job> {
    checkOptions(options, KNOWN_CHANGE, "options of runNow");
    return this.#connection.call("run_job_now", { ...options, id });
  }

  /** Submits jobs with edges between them, all or none; `after` has names of other jobs of the flow, or ids. */
  async submitFlow(flow: FlowRequest, options: ChangeOptions = {}): Promise<SubmittedFlow> {
    checkOptions(options, KNOWN_CHANGE, "options of submitFlow");
    flow.jobs.forEach((job, i) => checkPayload(job, `jobs[${i}].payload`));
    return this.#connection.call("submit_flow", { ...options, body: flow });
  }

  /** Lists flows, newest first: `for await` fetches page after page, `page` fetches one. */
  listFlows(filter: FlowFilter = {}, options: RequestOptions = {}): FlowList {
    checkOptions(options, KNOWN, "options of listFlows");
    return new FlowList(this.#connection, filter, options);
  }

  /** Returns a flow with one page of its jobs, their states and edges. */
  async getFlow(id: string, position: FlowPosition = {}, options: RequestOptions = {}): Promise<FlowGraph> {
    checkOptions(options, KNOWN, "options of getFlow");
    return this.#connection.call("get_flow", { ...options, id, query: position });
  }

  /** Cancels all jobs of a flow that have not ended; running ones are asked to stop. */
  async cancelFlow(
    id: string,
    request: FlowCancelRequest = {},
    options: ChangeOptions = {},
  ): Promise<ChangedFlow> {
    checkOptions(options, KNOWN_CHANGE, "options of cancelFlow");
    return this.#connection.call("cancel_flow", { ...options, id, body: request });
  }

  /** Queues the failed and cancelled jobs of a flow again; each waits again for its parents. */
  async retryFlow(id: string, options: ChangeOptions = {}): Promise<ChangedFlow> {
    checkOptions(options, KNOWN_CHANGE, "options of retryFlow");
    return this.#connection.call("retry_flow", { ...options, id });
  }

  /** Yields the flow and the changes of its jobs until all have ended; resumes lost connections. */
  watchFlow(id: string, options: RequestOptions = {}): AsyncGenerator<FlowEvent, void, undefined> {
    checkOptions(options, KNOWN, "options of watchFlow");
    return flowEvents(this.#connection, id, options);
  }

  /** Waits until all jobs of the flow have ended; throws FlowFailed unless all completed. */
  async waitFlow(id: string, options: WaitOptions = {}): Promise<Flow> {
    checkOptions(options, KNOWN_WAIT, "options of waitFlow");
    return this.#wait(`flow ${id}`, options, async (signal) => {
      for await (const { flow } of this.watchFlow(id, { signal })) {
        if (flow?.status === "completed") return flow;
        if (flow !== undefined && flow.status !== "running") throw new FlowFailed(flow);
      }
      throw new ServerUnreachable(`the stream of flow ${id} ended before the flow did`);
    });
  }

  /** Sends an event: jobs that wait for its name and key continue, also those that begin to wait later. */
  async sendEvent(event: NewEvent, options: ChangeOptions = {}): Promise<EventDelivery> {
    checkOptions(options, KNOWN_CHANGE, "options of sendEvent");
    checkPayload(event, "payload");
    return this.#connection.call("send_event", { ...options, body: event });
  }

  /** Yields the job's current state, then each change, until it has ended; resumes lost connections. */
  watch(id: string, options: WatchOptions = {}): AsyncGenerator<JobEvent, void, undefined> {
    checkOptions(options, KNOWN_WATCH, "options of watch");
    return jobEvents(this.#connection, id, options);
  }

  /** Waits for the job's end and returns its result; throws JobFailed if it failed or was cancelled. */
  async wait<Result = unknown>(id: string, options: WaitOptions = {}): Promise<Result> {
    checkOptions(options, KNOWN_WAIT, "options of wait");
    return this.#wait(`job ${id}`, options, async (signal) => {
      for await (const { job } of this.watch(id, { signal })) {
        if (job.status === "completed") return job.result as Result;
        if (hasEnded(job)) throw new JobFailed(job);
      }
      throw new ServerUnreachable(`the stream of job ${id} ended before the job did`);
    });
  }

  async #wait<Result>(
    subject: string,
    { timeoutMs = Infinity, signal }: WaitOptions,
    end: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const deadline = new Deadline(signal);
    deadline.start(Math.max(timeoutMs, ONE_LOOK_MS));
    try {
      return await end(deadline.signal);
    } catch (error) {
      const isFinal = error instanceof JobFailed || error instanceof FlowFailed;
      if (!deadline.isOver || signal?.aborted || isFinal) throw error;
      throw new DOMException(`${subject} did not end within ${timeoutMs} ms`, "TimeoutError");
    } finally {
      deadline.end();
    }
  }
}

function checkPayload(job: { payload?: unknown }, field: string): void {
  if (job.payload !== undefined) checkJson(job.payload, field);
}
