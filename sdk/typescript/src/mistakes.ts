/** A mistake at the start that nobody catches ends the program with one line, not with a stack. */

import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

import { InvalidInput, ServerError } from "./errors.js";

// As the commands of laneway end.
const WRONG = 2;
const REFUSED = 4;

/** From now on; whoever catches the error, or hears of all uncaught ones, sees it as it is. */
export function tellMistakes(): void {
  tellNoMistakes();
  // The error of a thread is for the program that started it.
  if (isMainThread) process.on("uncaughtExceptionMonitor", tell);
}

/** A worker has started: where it went wrong is to be seen from now on. */
export function tellNoMistakes(): void {
  process.off("uncaughtExceptionMonitor", tell);
}

function tell(error: Error): void {
  const isOurs = error instanceof InvalidInput || error instanceof ServerError;
  const isHeard =
    process.listenerCount("uncaughtException") > 0 ||
    process.hasUncaughtExceptionCaptureCallback();
  if (!isOurs || isHeard || process.env.LANEWAY_DEBUG) return;
  writeSync(process.stderr.fd, `laneway: ${error.message}\n`);
  process.exit(error instanceof InvalidInput || error.isRefusal ? WRONG : REFUSED);
}
