import { expect, it } from "vitest";
import { byHost, foldSilent, nameWords, runsJobs, stateOf, type Worker } from "./hosts";

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
  expect(hosts[0]?.workers.map(({ state }) => state)).toEqual(["dead", "live"]);
});

it("names workers, of many only a few", () => {
  const named = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `w${at}` }));
  expect(nameWords(named(2))).toBe("w0, w1");
  expect(nameWords(named(7))).toBe("w0, w1, w2, w3, w4 and 2 more");
});

it("shows every live worker and a few silent ones", () => {
  const [live, dead] = [worker({}), worker({ state: "dead" })];
  const many = [live, ...Array.from({ length: 9 }, () => ({ ...dead }))];
  expect(foldSilent(many).map(({ state }) => state)).toEqual(["live", ...Array(5).fill("dead")]);
  expect(foldSilent(many.slice(0, 7))).toHaveLength(7);
});

it.each([
  [{}, "Live"],
  [{ state: "dead" }, "Silent"],
  [{ is_stopping: true }, "Stopping"],
  [{ drain_requested_at: "2026-11-17T12:00:00Z" }, "Drained"],
] as const)("says that %o is %s", (fields, word) => {
  expect(stateOf(worker(fields)).word).toBe(word);
});

it("knows a server that runs no jobs", () => {
  expect(runsJobs({ job_types: [] })).toBe(false);
  expect(runsJobs({ job_types: ["ingestion"] })).toBe(true);
});
