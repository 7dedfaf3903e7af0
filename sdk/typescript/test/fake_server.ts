/** The service without a database: tests say what it answers, and see what it was told. */

import { randomUUID } from "node:crypto";

import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";

import type { AcquireLimitsResponse } from "../src/_generated/laneway/v1/AcquireLimitsResponse.js";
import type { BeginWaitRequest__Output } from "../src/_generated/laneway/v1/BeginWaitRequest.js";
import type { BeginWaitResponse } from "../src/_generated/laneway/v1/BeginWaitResponse.js";
import type { JobResult } from "../src/_generated/laneway/v1/JobResult.js";
import type { StoredWait } from "../src/_generated/laneway/v1/StoredWait.js";
import type { SubmitSubJobsRequest__Output } from "../src/_generated/laneway/v1/SubmitSubJobsRequest.js";
import type { Assignment } from "../src/_generated/laneway/v1/Assignment.js";
import type { Claim__Output } from "../src/_generated/laneway/v1/Claim.js";
import type { AcquireLimitsRequest__Output } from "../src/_generated/laneway/v1/AcquireLimitsRequest.js";
import type { DispatchServiceHandlers } from "../src/_generated/laneway/v1/DispatchService.js";
import type { ReleaseLimitsRequest__Output } from "../src/_generated/laneway/v1/ReleaseLimitsRequest.js";
import type { Result__Output } from "../src/_generated/laneway/v1/Result.js";
import type { StreamJobsRequest__Output } from "../src/_generated/laneway/v1/StreamJobsRequest.js";
import type { StreamJobsResponse } from "../src/_generated/laneway/v1/StreamJobsResponse.js";
import type { Update__Output } from "../src/_generated/laneway/v1/Update.js";
import { type Answer, DispatchService, type Step } from "../src/protocol.js";

type Stream = ServerWritableStream<StreamJobsRequest__Output, StreamJobsResponse>;

export const TOKEN = "a-token";

/** A list that can be waited for. */
export class Heard<T> {
  readonly all: T[] = [];
  #waiting: (() => void)[] = [];

  push(...items: T[]): void {
    this.all.push(...items);
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** The first of them that fits, now or later. */
  async first(fits: (item: T) => boolean = () => true, from = 0): Promise<T> {
    for (;;) {
      const found = this.all.slice(from).find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
  }

  async count(least: number): Promise<T[]> {
    while (this.all.length < least) {
      await new Promise<void>((resume) => this.#waiting.push(resume));
    }
    return this.all;
  }
}

export function refusal(code: status, details: string): Partial<ServiceError> {
  return { code, details };
}

export class FakeServer {
  readonly handshakes = new Heard<StreamJobsRequest__Output>();
  readonly beats = new Heard<Claim__Output[]>();
  readonly updates = new Heard<Update__Output>();
  readonly calls = new Heard<Result__Output[]>();
  /** Jobs that the worker takes beyond its room, by lane, as each call with results says. */
  readonly allowed = new Heard<Record<string, number>>();
  readonly results = new Heard<Result__Output>();
  readonly acquired = new Heard<AcquireLimitsRequest__Output>();
  readonly begun = new Heard<BeginWaitRequest__Output>();
  readonly submitted = new Heard<SubmitSubJobsRequest__Output>();
  readonly released = new Heard<ReleaseLimitsRequest__Output>();
  /** What each call is answered; throw a `refusal` to fail it. */
  onHandshake: (handshake: StreamJobsRequest__Output) => void = () => {};
  onBeat: (claim: Claim__Output) => Answer | "silence" = () => "ANSWER_ACCEPTED";
  onUpdate: (update: Update__Output) => Answer = () => "ANSWER_ACCEPTED";
  onResults: (results: Result__Output[]) => void = () => {};
  onResult: (result: Result__Output) => Answer = () => "ANSWER_ACCEPTED";
  onAcquire: (request: AcquireLimitsRequest__Output) => AcquireLimitsResponse = () => ({
    answer: "ANSWER_ACCEPTED",
  });
  onBegin: (request: BeginWaitRequest__Output) => BeginWaitResponse = () => ({
    answer: "ANSWER_ACCEPTED",
    state: "WAIT_STATE_OPEN",
  });
  onSubmit: (request: SubmitSubJobsRequest__Output) => Answer = () => "ANSWER_ACCEPTED";
  /** Waits of earlier attempts, and results of sub-jobs or of what a job came after. */
  storedWaits: StoredWait[] = [];
  jobResults: JobResult[] = [];
  onStep: (step: Step) => Step = (step) => step;
  /** Job types that the token does not reach. */
  uncovered: string[] = [];
  ignored: { jobType: string; fields: string[]; argumentsRefused?: string }[] = [];
  port = 0;
  #server = new Server();
  #stream: Stream | undefined;

  static async start(port = 0): Promise<FakeServer> {
    const fake = new FakeServer();
    await fake.#listen(port);
    return fake;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Sends a job through the newest stream. */
  assign(jobType: string, given: Partial<Assignment> = {}): { jobId: string; attempt: number } {
    const claim = { jobId: given.jobId ?? randomUUID(), attempt: given.attempt ?? 1 };
    const rest = { jobType, payload: "{}", leaseMs: 30_000, leaseLeftMs: 30_000, lane: "default", canWait: true };
    this.#send({ assignments: [{ ...rest, ...given, ...claim }] });
    return claim;
  }

  beat(): void {
    this.#send({ beat: true });
  }

  /** Says that the token expires soon. */
  sendExpiry(tokenExpiresInMs: number): void {
    this.#send({ beat: true, tokenExpiresInMs });
  }

  /** As a replica that stops, or is killed. */
  cut(why = refusal(status.UNAVAILABLE, "the replica stops")): void {
    this.#stream?.emit("error", why);
    this.#stream = undefined;
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #send(message: StreamJobsResponse): void {
    if (this.#stream === undefined) throw new Error("no worker is connected");
    this.#stream.write(message);
  }

  async #listen(port: number): Promise<void> {
    const handlers: DispatchServiceHandlers = {
      StreamJobs: (call) => this.#streamJobs(call),
      Heartbeat: unary((call, done) => {
        this.beats.push(call.request.claims);
        const answers = call.request.claims.map((claim) => this.onBeat(claim));
        if (!answers.includes("silence")) done(null, { answers: answers as Answer[] });
      }),
      ReportProgress: unary((call, done) => {
        const progressed = call.request.updates.map((update) => ({
          answer: this.onUpdate(update),
          steps: update.steps.map((step) => this.onStep(step)),
        }));
        this.updates.push(...call.request.updates);
        done(null, { progressed });
      }),
      ReportResult: unary((call, done) => {
        this.onResults(call.request.results);
        const answers = call.request.results.map((result) => this.onResult(result));
        this.allowed.push(call.request.ahead);
        this.calls.push(call.request.results);
        this.results.push(...call.request.results);
        done(null, { answers });
      }),
      AcquireLimits: unary((call, done) => {
        const answer = this.onAcquire(call.request);
        this.acquired.push(call.request);
        done(null, answer);
      }),
      ReleaseLimits: unary((call, done) => {
        this.released.push(call.request);
        done(null, { answer: "ANSWER_ACCEPTED" });
      }),
      ReadWaits: unary((_, done) => done(null, { answer: "ANSWER_ACCEPTED", waits: this.storedWaits })),
      BeginWait: unary((call, done) => {
        this.begun.push(call.request);
        done(null, this.onBegin(call.request));
      }),
      SubmitSubJobs: unary((call, done) => {
        this.submitted.push(call.request);
        done(null, { answer: this.onSubmit(call.request) });
      }),
      ReadResults: unary((call, done) => {
        const { after } = call.request;
        const results = this.jobResults.slice(after, after + 2);
        done(null, { answer: "ANSWER_ACCEPTED", results });
      }),
    };
    this.#server.addService(DispatchService.service, { ...handlers });
    this.port = await new Promise((resolve, reject) => {
      const at = `127.0.0.1:${port}`;
      this.#server.bindAsync(at, ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
  }

  #streamJobs(call: Stream): void {
    try {
      if (call.metadata.get("authorization")[0] !== `Bearer ${TOKEN}`) {
        throw refusal(status.UNAUTHENTICATED, "nobody is known by this token");
      }
      this.onHandshake(call.request);
    } catch (error) {
      call.emit("error", error);
      return;
    }
    this.#stream = call;
    call.write({ uncovered: this.uncovered, ignored: this.ignored });
    this.handshakes.push(call.request);
  }
}

function unary<Q, A>(
  answer: (call: ServerUnaryCall<Q, A>, done: sendUnaryData<A>) => void,
): (call: ServerUnaryCall<Q, A>, done: sendUnaryData<A>) => void {
  return (call, done) => {
    try {
      answer(call, done);
    } catch (error) {
      done(error as ServiceError);
    }
  };
}
