/** Jobs as they come: those that may have waited too long to be read are asked about first. */

import type { Complaints } from "./complaints.js";
import type { Connection } from "./connection.js";
import type { Executor } from "./executor.js";
import type { Lag } from "./lag.js";
import type { Assignment } from "./protocol.js";

const LONGEST_LAG_MS = 1000;
const CALL_MS = 5000;
// Somebody writes about it just then: it is asked about again at once.
const SOON_MS = 1000;

export class Intake {
  constructor(
    private readonly connection: Connection,
    private readonly workerId: string,
    private readonly lag: Lag,
    private readonly executor: Executor,
    private readonly complaints: Complaints,
  ) {}

  take(assignments: Assignment[], isOpen: () => boolean): void {
    if (this.lag.ms > LONGEST_LAG_MS) void this.#ask(assignments, isOpen);
    else for (const one of assignments) this.executor.start(one);
  }

  /** This process stood still meanwhile: a lease may be over, and its job run elsewhere. */
  async #ask(assignments: Assignment[], isOpen: () => boolean): Promise<void> {
    const claims = assignments.map(({ jobId, attempt }) => ({ jobId, attempt }));
    const request = { workerId: this.workerId, claims };
    const age = this.lag.ms;
    const asked = performance.now();
    try {
      const { answers } = await this.connection.call("heartbeat", request, CALL_MS);
      if (!isOpen()) return;
      const took = performance.now() - asked;
      assignments.forEach((one, i) => {
        if (answers[i] === "ANSWER_FENCED") return;
        const isRenewed = answers[i] !== "ANSWER_UNSPECIFIED";
        this.executor.start({ ...one, leaseLeftMs: isRenewed ? one.leaseMs - took : SOON_MS });
      });
    } catch (error) {
      // Nobody says that they are over: as long as they may be ours they are.
      this.complaints.tell("heartbeat", error);
      if (!isOpen()) return;
      const passed = age + performance.now() - asked;
      for (const one of assignments) {
        if (one.leaseLeftMs > passed) {
          this.executor.start({ ...one, leaseLeftMs: one.leaseLeftMs - passed });
        }
      }
    }
  }
}
