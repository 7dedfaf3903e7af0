import { expect, it } from "vitest";
import { eachOf } from "./pool";
import { addTo, type BulkProgress, percentOf, summary } from "./progress";
import { type ChosenJob, fits, takes, VERBS, verbOf } from "./verbs";

it("works on every item once, a few at a time", async () => {
  let [now, most] = [0, 0];
  const seen: number[] = [];
  await eachOf([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    now += 1;
    most = Math.max(most, now);
    await Promise.resolve();
    seen.push(item);
    now -= 1;
  });
  expect(seen.sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(most).toBe(3);
});

it("needs no items", async () => {
  await expect(eachOf([], 3, () => Promise.reject(new Error("no")))).resolves.toBeUndefined();
});

const progress: BulkProgress = {
  state: "running",
  total: 10,
  done: 3,
  skipped: { "is running": 2 },
  failed: {},
};

it("sums up", () => {
  expect(percentOf(progress)).toBe(50);
  expect(percentOf({ ...progress, total: null })).toBeNull();
  expect(summary(verbOf("retry"), progress)).toBe("3 jobs retried, 2 skipped");
  const failed = addTo(addTo({}, "timeout"), "timeout");
  expect(summary(verbOf("delete"), { ...progress, done: 1, skipped: {}, failed })).toBe(
    "1 job deleted, 2 failed",
  );
});

const job = { id: "1", created_by: "ada", workspace: "default", lane: "bulk" };

it("offers a verb only where it can act", () => {
  const ids = (
    status: "failed" | "running" | "approved" | "waiting",
    run_at: string | null = null,
    kind?: "sleep" | "event",
  ) => {
    const waits_for = kind === undefined ? null : ({ kind } as ChosenJob["waits_for"]);
    const it = { ...job, status, run_at, waits_for };
    return VERBS.filter((verb) => takes(verb, it)).map(({ id }) => id);
  };
  expect(ids("failed")).toEqual(["retry", "delete"]);
  expect(ids("running")).toEqual(["cancel"]);
  expect(ids("waiting")).toEqual(["reprioritize", "cancel"]);
  expect(ids("waiting", "9999-01-01T00:00:00Z", "event")).not.toContain("run_now");
  expect(ids("waiting", null, "sleep")).toContain("run_now");
  expect(ids("approved", "2020-01-01T00:00:00Z")).toEqual(["reprioritize", "cancel"]);
  expect(ids("approved", "9999-01-01T00:00:00Z")).toContain("run_now");
  expect(fits(verbOf("run_now"), {})).toBe(true);
  expect(fits(verbOf("run_now"), { status: "failed" })).toBe(false);
  expect(fits(verbOf("retry"), {})).toBe(true);
  expect(fits(verbOf("retry"), { status: "running" })).toBe(false);
});
