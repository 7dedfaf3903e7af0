import { expect, it } from "vitest";
import { neighboursOf } from "./neighbours";

type Flow = Parameters<typeof neighboursOf>[1];
type Job = Parameters<typeof neighboursOf>[0];

const job = (id: string, after: string[] = [], owner: string | null = null) => ({
  id,
  name: id === "a" ? "extract" : null,
  job_type: `type ${id}`,
  status: "running",
  after,
  after_failure: "run",
  owner,
});
const FLOW = [
  job("a"),
  job("b", ["a", "gone"]),
  job("c", ["b"]),
  job("s", [], "b"),
] as unknown as Flow;
const waits = (kind: string, jobs: string[]) => ({ kind, jobs }) as Job["waits_for"];

it("finds what a job comes after, what follows it, and its sub-jobs", () => {
  const found = neighboursOf({ id: "b", waits_for: null }, FLOW);
  expect(found).toEqual({
    owner: [],
    before: [
      { id: "a", name: "extract", status: "running" },
      { id: "gone", name: null, status: null },
    ],
    subJobs: [{ id: "s", name: "type s", status: "running" }],
    followers: [{ id: "c", name: "type c", status: "running" }],
    afterFailure: "run",
  });
  expect(neighboursOf({ id: "s", waits_for: null }, FLOW).owner.map(({ id }) => id)).toEqual(["b"]);
});

it("knows what a job without a flow waits for", () => {
  const found = neighboursOf({ id: "x", waits_for: waits("jobs", ["a"]) }, []);
  expect(found.before).toEqual([{ id: "a", name: null, status: null }]);
  const owner = neighboursOf({ id: "x", waits_for: waits("sub_jobs", ["a"]) }, []);
  expect([owner.before, owner.subJobs.map(({ id }) => id)]).toEqual([[], ["a"]]);
  expect(neighboursOf({ id: "x", waits_for: null }, [])).toMatchObject({ before: [], subJobs: [] });
});
