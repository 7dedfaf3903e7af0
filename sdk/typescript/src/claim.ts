/** One attempt of one job: the fencing token of every write. */

import type { Claim } from "./protocol.js";

export type { Claim };

/** A reason to stop an attempt; `lost`: its lease has lapsed by our clock. */
export type StopSignal = "cancel_requested" | "fenced" | "lost";

/** The delay before a write on a locked job is repeated. */
export const BUSY_MS = 50;

export type Key = string;

export function keyOf(claim: Claim): Key {
  return `${claim.jobId}/${claim.attempt}`;
}
