/**
 * The errors of a client, besides InvalidInput for wrong arguments:
 *
 *     ApiError            the server refused the request; `code` is stable
 *     ServerUnreachable   no server answered, or the answer was lost
 *     JobFailed           the awaited job failed or was cancelled
 *     FlowFailed          the awaited flow failed or was cancelled
 */

import type { FieldError, Flow, Job, Problem } from "../_generated/api.js";

const PASSING = new Set([429, 502, 503, 504]);
const LONGEST_RETRY_AFTER_MS = 60_000;

/** A refused request, as the server's problem details describe it. */
export class ApiError extends Error {
  override name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** Stable: programs may rely on it, such as `not_found`, `invalid_input`, `quota_exceeded`. */
  readonly code: string;
  /** The fields that break a rule, with the code `invalid_input`. */
  readonly fields: readonly FieldError[];
  /** The id of the request in the server's log. */
  readonly requestId: string | undefined;
  /** All problem details that the server sent. */
  readonly problem: Partial<Problem>;
  /** How long the server asks to wait before the request is sent again. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, problem: Partial<Problem>, retryAfterMs?: number) {
    super(messageOf(status, problem));
    this.status = status;
    this.code = problem.code ?? "server_error";
    this.fields = problem.errors ?? [];
    this.requestId = problem.request_id;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  /** The same request may be accepted soon. */
  get mayPass(): boolean {
    // A quota frees when jobs end, which may take hours: the caller decides.
    if (this.code === "quota_exceeded") return false;
    if ((this.retryAfterMs ?? 0) > LONGEST_RETRY_AFTER_MS) return false;
    return PASSING.has(this.status) || this.code === "idempotency_under_way";
  }
}

function messageOf(status: number, { detail, errors }: Partial<Problem>): string {
  const fields = (errors ?? []).map(({ field, rule }) => `${field}: ${rule}`);
  return fields.join("; ") || detail || `the server responded with status ${status}`;
}

/** There is no response that can be used; `cause` is the error of `fetch`. */
export class ServerUnreachable extends Error {
  override name = "ServerUnreachable";
  readonly code = "server_unreachable";
}

/** The job failed or was cancelled; `job` has its error or the reason. */
export class JobFailed extends Error {
  override name = "JobFailed";
  readonly code = "job_failed";

  constructor(readonly job: Job) {
    super(`job ${job.id} ${howItEnded(job)}`);
  }
}

/** A job of the flow failed or was cancelled; `flow` has the numbers of its jobs. */
export class FlowFailed extends Error {
  override name = "FlowFailed";
  readonly code = "job_failed";

  constructor(readonly flow: Flow) {
    const { completed, failed, cancelled, jobs } = flow.counts;
    const counts = [`${completed} of ${jobs} job${jobs === 1 ? "" : "s"} completed`];
    if (failed > 0) counts.push(`${failed} failed`);
    if (cancelled > 0) counts.push(`${cancelled} cancelled`);
    const how = flow.status === "cancelled" ? "was cancelled" : "failed";
    super(`flow ${flow.name} ${flow.id} ${how}: ${counts.join(", ")}`);
  }
}

function howItEnded({ status, error, cancelled_by, cancel_reason }: Job): string {
  if (status !== "cancelled") return error === null ? "failed" : `failed: ${error.type}: ${error.message}`;
  const by = cancelled_by === null ? "" : ` by ${cancelled_by}`;
  return `was cancelled${by}${cancel_reason === null ? "" : `: ${cancel_reason}`}`;
}
