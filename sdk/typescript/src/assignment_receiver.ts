/** Starts received assignments; renews first those that may have waited too long to be read. */

import type { ThrottledWarnings } from "./throttled_warnings.js";
import type { Connection } from "./connection.js";
import type { Executor } from "./executor.js";
import type { LoopLag } from "./loop_lag.js";
import type { Assignment } from "./protocol.js";

const LONGEST_LAG_MS = 1000;
const CALL_MS = 5000;
// The assumed lease of a locked job, which is renewed again at once.
const SOON_MS = 1000;

export class AssignmentReceiver {
  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    private readonly lag: LoopLag,
    private readonly executor: Executor,
    private readonly warnings: ThrottledWarnings,
  ) {}

  take(assignments: Assignment[], isOpen: () => boolean): void {
    if (this.lag.ms > LONGEST_LAG_MS) void this.#renewFirst(assignments, isOpen);
    else for (const one of assignments) this.executor.start(one);
  }

  /** Renews leases before the start: after a pause of this process a job may run elsewhere. */
  async #renewFirst(assignments: Assignment[], isOpen: () => boolean): Promise<void> {
    const claims = assignments.map(({ jobId, attempt }) => ({ jobId, attempt }));
    const request = { workerId: this.workerId, claims };
    const age = this.lag.ms;
    const askedAt = performance.now();
    try {
      const { answers } = await this.connection.call("heartbeat", request, CALL_MS);
      if (!isOpen()) return;
      const took = performance.now() - askedAt;
      assignments.forEach((one, i) => {
        if (answers[i] === "ANSWER_FENCED") return;
        const isRenewed = answers[i] !== "ANSWER_UNSPECIFIED";
        this.executor.start({ ...one, leaseLeftMs: isRenewed ? one.leaseMs - took : SOON_MS });
      });
    } catch (error) {
      // Without an answer, start those whose leases have not lapsed by our clock.
      this.warnings.warn("heartbeat", error);
      if (!isOpen()) return;
      const passed = age + performance.now() - askedAt;
      for (const one of assignments) {
        if (one.leaseLeftMs > passed) {
          this.executor.start({ ...one, leaseLeftMs: one.leaseLeftMs - passed });
        }
      }
    }
  }
}
