export type { Logger } from "./throttled_warnings.js";
export type { Tls } from "./connection.js";
export type { RetryOptions } from "./call_retry.js";
export { Context } from "./context.js";
export type { JobLog, Progress } from "./context.js";
export {
  Cancel,
  InvalidInput,
  InvalidResult,
  NondeterministicHandler,
  PublicError,
  Retry,
  ServerError,
  Snooze,
  StaleAttempt,
  type StopReason,
  Stopped,
  SubJobsFailed,
  Suspended,
  WaitTimeout,
} from "./errors.js";
export type { Analysis, Approval, Handler, HandlerOptions, RetryPolicy } from "./handlers.js";
export type { Json } from "./json.js";
export type { Middleware } from "./middleware.js";
export type { Token } from "./token.js";
export type { EventOptions, JobResult, RunAllOptions, SubJob } from "./waits.js";
export { Worker } from "./worker.js";
export type { WorkerOptions } from "./worker.js";
