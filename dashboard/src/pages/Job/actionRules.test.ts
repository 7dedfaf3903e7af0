import { describe, expect, it } from "vitest";
import type { Me } from "../../api";
import { covers } from "../../api/access";
import { actionsFor, needsAnother, seesPrivate } from "./actionRules";

const NOW = Date.parse("2026-11-18T00:00:00Z");
const ALL = [{ owner: null, workspace: null, lanes: null }];
const me = (permissions: Me["permissions"], name = "ada") => ({ name, permissions }) as Me;
const operator = me({
  "jobs:submit": ALL,
  "jobs:cancel": ALL,
  "jobs:approve": ALL,
  "workers:manage": ALL,
});
const job = (given: object) => ({
  status: "approved" as const,
  created_by: "ada",
  workspace: "default",
  lane: "bulk",
  run_at: null,
  cancel_requested_at: null,
  claimed_at: null,
  two_person: false,
  waits_for: null,
  ...given,
});
const names = (who: Me, given: object) => [...actionsFor(who, job(given), NOW)].sort();

describe("actions", () => {
  it.each([
    [{}, ["cancel", "clone", "reprioritize"]],
    [{ run_at: "2026-11-18T00:01:00Z" }, ["cancel", "clone", "reprioritize", "run_now"]],
    [{ run_at: "2026-11-17T00:00:00Z" }, ["cancel", "clone", "reprioritize"]],
    [{ status: "waiting" }, ["cancel", "clone", "reprioritize"]],
    [
      { status: "waiting", waits_for: { kind: "sleep" } },
      ["cancel", "clone", "reprioritize", "run_now"],
    ],
    [{ status: "running" }, ["cancel", "clone"]],
    [{ status: "running", cancel_requested_at: "2026-11-18T00:00:00Z" }, ["clone"]],
    [{ status: "failed" }, ["clone", "delete", "retry"]],
    [{ status: "completed" }, ["clone", "delete"]],
    [{ status: "awaiting_approval" }, ["approve", "cancel", "clone", "reject", "reprioritize"]],
    [
      { status: "awaiting_approval", two_person: true },
      ["cancel", "clone", "reject", "reprioritize"],
    ],
  ])("of %j", (given, expected) => expect(names(operator, given)).toEqual(expected));

  it("shows none to a viewer", () => {
    expect(names(me({ "jobs:read": ALL }), { status: "failed" })).toEqual([]);
  });
});

it("looks at the scope of a permission", () => {
  const own = me({ "jobs:cancel": [{ owner: "ada", workspace: null, lanes: null }] });
  expect(covers(own, "jobs:cancel", job({}))).toBe(true);
  expect(covers(own, "jobs:cancel", job({ created_by: "eve" }))).toBe(false);
  const lanes = me({ "jobs:cancel": [{ owner: null, workspace: "default", lanes: ["bulk"] }] });
  expect(covers(lanes, "jobs:cancel", job({}))).toBe(true);
  expect(covers(lanes, "jobs:cancel", job({ lane: "other" }))).toBe(false);
});

it("shows private parts of one's own jobs", () => {
  expect(seesPrivate(me({}), job({}))).toBe(true);
  expect(seesPrivate(me({}), job({ created_by: "eve" }))).toBe(false);
});

it("keeps submitters from approving two-person jobs", () => {
  expect(needsAnother(me({}), { two_person: true, created_by: "eve" })).toBe(false);
  expect(needsAnother(me({}), { two_person: true, created_by: "ada" })).toBe(true);
  expect(needsAnother(me({}), { two_person: false, created_by: "ada" })).toBe(false);
});
