/** Ends the program with one line instead of a stack for an uncaught startup error. */

import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

import { InvalidInput, ServerError } from "./errors.js";

// The exit codes of the laneway command.
const WRONG = 2;
const REFUSED = 4;

const startupErrors = new WeakSet<object>();

/** Marks the error; code that catches it gets it unchanged. */
export function markStartupError(error: unknown): unknown {
  const isOurs = error instanceof InvalidInput || error instanceof ServerError;
  // The error of a thread is reported to the program that started it.
  if (isOurs && isMainThread) {
    startupErrors.add(error);
    process.off("uncaughtExceptionMonitor", report).on("uncaughtExceptionMonitor", report);
  }
  return error;
}

function report(error: InvalidInput | ServerError): void {
  const isHandled =
    process.listenerCount("uncaughtException") > 0 ||
    process.hasUncaughtExceptionCaptureCallback();
  if (!startupErrors.has(error) || isHandled || process.env.LANEWAY_DEBUG) return;
  writeSync(process.stderr.fd, `laneway: ${error.message}\n`);
  const isWrong = error instanceof InvalidInput || error.code === "INVALID_ARGUMENT";
  process.exit(isWrong ? WRONG : REFUSED);
}
