/** A mistake at the start that nobody catches ends the program with one line, not with a stack. */

import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

import { InvalidInput, ServerError } from "./errors.js";

// As the commands of laneway end.
const WRONG = 2;
const REFUSED = 4;

const mistakes = new WeakSet<object>();

/** Marks it; whoever catches the error, or hears of all uncaught ones, sees it as it is. */
export function mistake(error: unknown): unknown {
  const isOurs = error instanceof InvalidInput || error instanceof ServerError;
  // The error of a thread is for the program that started it.
  if (isOurs && isMainThread) {
    mistakes.add(error);
    process.off("uncaughtExceptionMonitor", tell).on("uncaughtExceptionMonitor", tell);
  }
  return error;
}

function tell(error: InvalidInput | ServerError): void {
  const isHeard =
    process.listenerCount("uncaughtException") > 0 ||
    process.hasUncaughtExceptionCaptureCallback();
  if (!mistakes.has(error) || isHeard || process.env.LANEWAY_DEBUG) return;
  writeSync(process.stderr.fd, `laneway: ${error.message}\n`);
  const isWrong = error instanceof InvalidInput || error.code === "INVALID_ARGUMENT";
  process.exit(isWrong ? WRONG : REFUSED);
}
