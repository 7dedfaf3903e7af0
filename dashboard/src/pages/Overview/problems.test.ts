import { describe, expect, it } from "vitest";
import type { components } from "../../api";
import { findProblems, type ProblemInput, serves, waitBound } from "./problems";

type Schemas = components["schemas"];

const lane = (change: Partial<Schemas["LaneStatusOut"]> = {}): Schemas["LaneStatusOut"] => ({
  name: "interactive",
  job_types: [],
  max_slots: 2,
  poll_interval_ms: 2000,
  stale_timeout_minutes: 30,
  lease_seconds: 30,
  enabled: true,
  updated_at: null,
  updated_by: null,
  slots_used: 0,
  waiting: [],
  frozen_by: null,
  frozen: false,
  utilization: 0,
  depth: 0,
  depth_is_capped: false,
  oldest_wait_s: null,
  ...change,
});

const worker = (change: Partial<Schemas["WorkerRowOut"]> = {}): Schemas["WorkerRowOut"] => ({
  id: "w1",
  name: "api-1",
  host: "here",
  pid: 1,
  code: "abc",
  transport: "database",
  job_types: ["ingestion"],
  lanes: null,
  concurrency: 4,
  memory_bytes: null,
  started_at: "2026-11-17T12:00:00Z",
  seen_at: "2026-11-17T12:00:00Z",
  seen_s: 95,
  drain_requested_at: null,
  drain_requested_by: null,
  is_live: true,
  running: 0,
  is_leader: false,
  room: {},
  is_stopping: false,
  state: "live",
  ...change,
});

const status = (change: Partial<Schemas["StatusOut"]> = {}): Schemas["StatusOut"] => ({
  paused: false,
  paused_at: null,
  paused_by: null,
  leader: null,
  lanes: [],
  active: [],
  workers: [worker()],
  silent: [],
  oldest_transaction: null,
  ...change,
});

const database = (change: Partial<Schemas["StorageOut"]> = {}): Schemas["StorageOut"] => ({
  server_version: "18.1",
  schema_version: "0023",
  pending: [],
  unknown: [],
  changed: [],
  bytes: 0,
  tables: [],
  oldest_transaction: null,
  connection: "direct",
  listens: true,
  listener: "listening",
  ...change,
});

const load = (job_type: string, depth = 3): Schemas["TypeLoadOut"] => ({
  job_type,
  depth,
  depth_is_capped: false,
  oldest_wait_s: 1,
});

const ids = (input: Partial<ProblemInput>) =>
  findProblems({ status: status(), ...input }).map(({ id }) => id);
// A lane whose waiting jobs are all of one type.
const busy = (change: Partial<Schemas["LaneStatusOut"]>, type = "ingestion") => {
  const { depth = 0, oldest_wait_s = null } = change;
  return lane({ ...change, waiting: [{ ...load(type, depth), oldest_wait_s }] });
};
const laneIds = (change: Partial<Schemas["LaneStatusOut"]>) =>
  ids({ status: status({ lanes: [busy(change)] }) });

it("finds nothing wrong in an idle cluster", () => {
  expect(ids({ status: status({ lanes: [lane()] }), database: database() })).toEqual([]);
});

describe("lanes", () => {
  it("bounds the oldest wait by half of the stale timeout", () => {
    expect(waitBound(lane())).toBe(900);
    expect(laneIds({ depth: 1, oldest_wait_s: 901 })).toEqual(["wait:interactive"]);
    expect(laneIds({ depth: 1, oldest_wait_s: 899 })).toEqual([]);
  });

  it("reports a full lane only when jobs wait for a while", () => {
    expect(laneIds({ slots_used: 2, depth: 5, oldest_wait_s: 61 })).toEqual(["full:interactive"]);
    expect(laneIds({ slots_used: 2, depth: 5, oldest_wait_s: 8 })).toEqual([]);
    expect(laneIds({ slots_used: 1, depth: 5, oldest_wait_s: 61 })).toEqual([]);
    expect(laneIds({ slots_used: 90, max_slots: null, depth: 5, oldest_wait_s: 61 })).toEqual([]);
  });

  it("reports a full lane with a long wait once", () => {
    const [only, ...others] = findProblems({
      status: status({ lanes: [busy({ slots_used: 2, depth: 5, oldest_wait_s: 2460 })] }),
    });
    expect(others).toEqual([]);
    expect(only?.title).toBe("Lane interactive: oldest wait 41 min");
    expect(only?.detail).toBe("5 jobs queued, all 2 slots in use; the bound is 15 min");
    expect(only?.href).toBe("/lanes/interactive");
  });

  it("does not blame a lane for jobs that no worker takes", () => {
    const lanes = [busy({ slots_used: 2, depth: 5, oldest_wait_s: 2460 }, "unknown")];
    expect(ids({ status: status({ lanes }) })).toEqual(["unserved:interactive:unknown"]);
  });

  it("reports drained, frozen and slotless lanes only if jobs wait", () => {
    expect(laneIds({ enabled: false })).toEqual([]);
    expect(laneIds({ enabled: false, depth: 1 })).toEqual(["closed:interactive"]);
    expect(laneIds({ max_slots: 0, depth: 1 })).toEqual(["full:interactive"]);
    expect(laneIds({ max_slots: 0 })).toEqual([]);
  });

  it("names the pause gate instead of every lane behind it", () => {
    const lanes = [busy({ depth: 7, oldest_wait_s: 9000 })];
    const [gate, ...others] = findProblems({
      status: status({ paused: true, paused_by: "nico", lanes }),
    });
    expect(others).toEqual([]);
    expect(gate?.detail).toBe("Paused by nico; no job starts, 7 jobs due");
  });
});

describe("workers", () => {
  it("knows which worker serves a job type", () => {
    expect(serves(worker(), "ingestion", "interactive")).toBe(true);
    expect(serves(worker({ lanes: ["system"] }), "ingestion", "interactive")).toBe(false);
    expect(serves(worker({ is_stopping: true }), "ingestion", "interactive")).toBe(false);
    const drained = worker({ drain_requested_at: "2026-11-17T12:00:00Z" });
    expect(serves(drained, "ingestion", "interactive")).toBe(false);
  });

  it("reports waiting job types that no live worker takes", () => {
    const lanes = [lane({ waiting: [load("ingestion"), load("polarity")], depth: 0 })];
    expect(ids({ status: status({ lanes }) })).toEqual(["unserved:interactive:polarity"]);
  });

  it("folds many of them into one", () => {
    const lanes = [lane({ waiting: ["a", "b", "c", "d", "e"].map((name) => load(name, 1)) })];
    const [only, ...others] = findProblems({ status: status({ lanes }) });
    expect(others).toEqual([]);
    expect(only?.title).toBe("No live worker takes 5 job types");
    expect(only?.detail).toBe("5 jobs queued: a, b, c and 2 more");
  });

  it("says so if there is no worker at all", () => {
    const lanes = [lane({ waiting: [load("ingestion")] })];
    expect(ids({ status: status({ lanes, workers: [] }) })).toEqual(["workers"]);
    expect(ids({ status: status({ workers: [] }) })).toEqual([]);
  });

  it("reports silent workers, many as one", () => {
    const silent = ["a", "b", "c", "d"].map((id) => worker({ id, name: id, state: "dead" }));
    expect(ids({ status: status({ silent: silent.slice(0, 2) }) })).toEqual([
      "silent:a",
      "silent:b",
    ]);
    expect(ids({ status: status({ silent }) })).toEqual(["silent"]);
    const [first] = findProblems({ status: status({ silent: [worker()] }) });
    expect(first?.title).toBe("Worker api-1 silent for 1 min 35 s");
  });
});

describe("failure bursts", () => {
  const failures = (count: number): Schemas["FailuresOut"] => ({
    window_s: 600,
    bucket_s: 60,
    is_capped: false,
    items: [
      {
        lane: "interactive",
        job_type: "ingestion",
        error_type: "ValueError",
        failures: count,
        first_at: "2026-11-17T11:59:00Z",
        trend: [],
        last_at: "2026-11-17T12:00:00Z",
        example: "8f3a",
      },
    ],
  });
  const series = (completed: number): Schemas["SeriesOut"] => ({
    window_s: 1800,
    bucket_s: 60,
    is_capped: false,
    points: [
      {
        at: "2026-11-17T12:00:00Z",
        lane: "interactive",
        job_type: null,
        started: 0,
        completed,
        failed: 0,
        cancelled: 0,
        wait_p50_s: null,
        wait_p95_s: null,
        run_p50_s: null,
        run_p95_s: null,
      },
    ],
  });

  it("needs a few failures and a share of the lane's ends", () => {
    expect(ids({ failures: failures(4) })).toEqual([]);
    expect(ids({ failures: failures(5) })).toEqual(["burst:interactive:ingestion"]);
    expect(ids({ failures: failures(5), series: series(1000) })).toEqual([]);
    expect(ids({ failures: failures(50), series: series(200) })).toHaveLength(1);
  });
});

describe("database", () => {
  const old = { pid: 7, application: "psql", user: "app", state: "idle in transaction" };

  it("reports an old transaction of another application", () => {
    expect(ids({ status: status({ oldest_transaction: { ...old, age_s: 299 } }) })).toEqual([]);
    const [found] = findProblems({
      status: status({ oldest_transaction: { ...old, age_s: 432 } }),
    });
    expect(found?.title).toBe("A transaction is open for 7 min 12 s");
    expect(found?.detail).toContain("psql (pid 7, user app)");
  });

  it("reports polling, but not a listener without streams", () => {
    expect(ids({ database: database({ listener: "polling" }) })).toEqual(["listener"]);
    expect(ids({ database: database({ listens: false, listener: "off" }) })).toEqual(["listener"]);
    expect(ids({ database: database({ listener: "off" }) })).toEqual([]);
  });

  it("reports a schema that does not match", () => {
    const found = database({ pending: ["0023"], changed: ["0002"], unknown: ["0099"] });
    expect(ids({ database: found })).toEqual(["schema", "changed", "newer"]);
  });
});

it("lists errors before warnings", () => {
  const found = findProblems({
    status: status({ silent: [worker()], lanes: [lane({ enabled: false, depth: 1 })] }),
    database: database({ pending: ["0023"] }),
  });
  expect(found.map(({ severity }) => severity)).toEqual(["error", "warning", "warning"]);
});
