import { expect, it } from "vitest";
import { byHost, runsJobs, stateOf, type Worker } from "./hosts";

const worker = (fields: Partial<Worker>): Worker =>
  ({
    state: "live",
    is_stopping: false,
    drain_requested_at: null,
    running: 0,
    ...fields,
  }) as Worker;

it("groups workers by host, hosts with silent workers first", () => {
  const hosts = byHost(
    [worker({ host: "a", running: 2 }), worker({ host: "b" }), worker({ host: "a", running: 1 })],
    [worker({ host: "b", state: "dead" })],
  );
  expect(
    hosts.map(({ name, silent, running, workers }) => [name, silent, running, workers.length]),
  ).toEqual([
    ["b", 1, 0, 2],
    ["a", 0, 3, 2],
  ]);
});

it.each([
  [{}, "live"],
  [{ state: "dead" }, "silent"],
  [{ is_stopping: true }, "stopping"],
  [{ drain_requested_at: "2026-11-17T12:00:00Z" }, "drained"],
] as const)("says that %o is %s", (fields, word) => {
  expect(stateOf(worker(fields)).word).toBe(word);
});

it("knows a server that runs no jobs", () => {
  expect(runsJobs({ job_types: [] })).toBe(false);
  expect(runsJobs({ job_types: ["ingestion"] })).toBe(true);
});
