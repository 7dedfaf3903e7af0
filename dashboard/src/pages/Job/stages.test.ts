import { describe, expect, it } from "vitest";
import type { components } from "../../api";
import { timeline } from "./stages";

type Job = components["schemas"]["JobDetailOut"];
type Attempt = components["schemas"]["AttemptOut"];

const at = (seconds: number) => new Date(Date.UTC(2026, 10, 18) + seconds * 1000).toISOString();

const job = (given: Partial<Job>): Job =>
  ({
    status: "completed",
    label: "completed",
    created_at: at(0),
    created_by: "ada",
    approved_at: at(0),
    decisions: [],
    expires_at: null,
    run_at: null,
    finished_at: null,
    cancel_requested_at: null,
    cancel_reason: null,
    cancelled_by: null,
    error: null,
    ...given,
  }) as Job;

const attempt = (number: number, from: number, to: number | null, outcome: string | null) =>
  ({
    attempt: number,
    worker: "w1",
    claimed_at: at(from),
    started_at: at(from),
    finished_at: to === null ? null : at(to),
    outcome,
    error: null,
  }) as Attempt;

const shown = (given: Job, attempts: Attempt[]) =>
  timeline(given, attempts).map((stage) => [stage.title, stage.seconds]);

describe("a job's life", () => {
  it("has waits and runs", () => {
    expect(shown(job({ finished_at: at(9) }), [attempt(1, 2, 9, "completed")])).toEqual([
      ["Submitted", null],
      ["Queued", 2],
      ["Attempt 1 completed", 7],
      ["Completed", null],
    ]);
  });

  it("goes through analysis and approval", () => {
    const decisions = [
      { decision: "approved", decided_at: at(60), decided_by: "eve", comment: "ok", seal: null },
    ];
    const stages = timeline(job({ status: "running", approved_at: at(60), decisions }), [
      attempt(1, 1, 3, "failed"),
      attempt(2, 5, 6, "analyzed"),
      attempt(3, 61, null, null),
    ]);
    expect(stages.map(({ title, seconds }) => [title, seconds])).toEqual([
      ["Submitted", null],
      ["Waited for its analysis", 1],
      ["Analysis failed", 2],
      ["Waited for its analysis", 2],
      ["Analysed", 1],
      ["Awaiting approval", 54],
      ["Approved", null],
      ["Queued", 1],
      ["Attempt 3 runs", null],
    ]);
    expect(stages[6]?.detail).toBe("by eve: “ok”");
    expect(stages.at(-1)?.isCurrent).toBe(true);
  });

  it("shows retries, snoozes and releases", () => {
    const attempts = [
      attempt(1, 0, 1, "failed"),
      attempt(2, 3, 4, "snoozed"),
      attempt(3, 64, 65, "released"),
      attempt(4, 66, 70, "failed"),
    ];
    expect(shown(job({ status: "approved", run_at: at(80) }), attempts)).toEqual([
      ["Submitted", null],
      ["Queued", 0],
      ["Attempt 1 failed", 1],
      ["Waited for the retry", 2],
      ["Attempt 2 snoozed", 1],
      ["Snoozed", 60],
      ["Attempt 3 was released by its worker", 1],
      ["Queued", 1],
      ["Attempt 4 failed", 4],
      ["Waits for its retry", null],
    ]);
  });

  it("never waits for less than nothing", () => {
    const early = [attempt(1, -2, 1, "failed"), attempt(2, 0.5, 0.4, "completed")];
    const lengths = timeline(job({ finished_at: at(0.4) }), early).map(({ seconds }) => seconds);
    expect(lengths.every((seconds) => seconds === null || seconds >= 0)).toBe(true);
  });

  it("does not count a policy's approval as a wait", () => {
    const decisions = [
      { decision: "automatic", decided_at: at(3), decided_by: "policy", comment: null, seal: null },
    ];
    const titles = timeline(job({ status: "approved", decisions }), [
      attempt(1, 1, 3, "analyzed"),
    ]).map(({ title }) => title);
    expect(titles).toEqual([
      "Submitted",
      "Waited for its analysis",
      "Analysed",
      "Approved",
      "Queued",
    ]);
  });

  it("names an expiry and a rejection", () => {
    const expired = job({
      status: "cancelled",
      approved_at: null,
      expires_at: at(100),
      finished_at: at(100),
      cancelled_by: "laneway",
    });
    expect(shown(expired, [])).toEqual([
      ["Submitted", null],
      ["Awaiting approval", 100],
      ["Approval expired", null],
    ]);
    const decisions = [
      { decision: "rejected", decided_at: at(9), decided_by: "eve", comment: "no", seal: null },
    ];
    const rejected = { ...expired, cancelled_by: "eve", finished_at: at(9), decisions };
    expect(timeline(rejected, []).map(({ title }) => title)).toEqual([
      "Submitted",
      "Awaiting approval",
      "Rejected",
      "Cancelled",
    ]);
  });

  it("folds many attempts", () => {
    const many = Array.from({ length: 30 }, (_, index) =>
      attempt(index + 21, index * 10, index * 10 + 1, "failed"),
    );
    const titles = timeline(job({ status: "failed", finished_at: at(291) }), many).map(
      ({ title }) => title,
    );
    expect(titles[1]).toBe("20 earlier attempts");
    expect(titles).toContain("23 more attempts");
    expect(titles.filter((title) => title.startsWith("Attempt"))).toHaveLength(7);
    expect(titles.at(-1)).toBe("Failed");
  });
});
