/** One attempt of one job: the fencing token of every write. */

import type { Claim } from "./protocol.js";

export type { Claim };

/** What became of a write about an attempt; `lost`: its lease is over by our own clock. */
export type News = "cancel_requested" | "fenced" | "lost";

/** Somebody else writes about the job just then: to be said again after so long. */
export const BUSY_MS = 50;

export type Key = string;

export function keyOf(claim: Claim): Key {
  return `${claim.jobId}/${claim.attempt}`;
}
