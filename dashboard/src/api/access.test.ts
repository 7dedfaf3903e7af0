import { expect, it } from "vitest";
import { coversEverything, coversLane } from "./access";
import type { Me } from "./session";

const me = (...lanes: (string[] | null)[]): Me => ({
  id: "1",
  name: "nico",
  kind: "person",
  permissions: {
    "workers:manage": lanes.map((each) => ({ owner: null, workspace: null, lanes: each })),
  },
  job_types: null,
  token_expires_at: null,
  server_version: "1",
  server_time: "2030-01-31T08:00:00Z",
  csrf: null,
});

it("covers the lanes of any term", () => {
  expect(coversLane(me(["a"], ["b"]), "workers:manage", "b")).toBe(true);
  expect(coversLane(me(["a"]), "workers:manage", "b")).toBe(false);
  expect(coversLane(me(null), "workers:manage", "b")).toBe(true);
  expect(coversLane(me(null), "workers:view", "b")).toBe(false);
});

it("covers everything only without bounds", () => {
  expect(coversEverything(me(["a"]), "workers:manage")).toBe(false);
  expect(coversEverything(me(["a"], null), "workers:manage")).toBe(true);
});
