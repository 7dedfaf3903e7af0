import { expect, it } from "vitest";
import { causePage, reasonParts } from "./reason";

const ID = "0198c1de-7b1e-7c43-8d2a-0242ac120002";

it("links the lane and the jobs that hold its slots", () => {
  const message = `2 of 2 slots of the lane bulk.in are in use, held by ${ID}`;
  expect(reasonParts({ code: "slots_full", message }, "bulk.in")).toEqual([
    { kind: "text", text: "2 of 2 slots of the lane " },
    { kind: "lane", name: "bulk.in" },
    { kind: "text", text: " are in use, held by " },
    { kind: "job", id: ID },
  ]);
});

it("links a limit by its whole name", () => {
  const message = `the limit open ai: v2: fully used, held by ${ID}; next turn: lane x, priority 3`;
  expect(reasonParts({ code: "limit", message }, "default")).toEqual([
    { kind: "text", text: "The limit " },
    { kind: "limit", name: "open ai: v2" },
    { kind: "text", text: ": fully used, held by " },
    { kind: "job", id: ID },
    { kind: "text", text: "; next turn: lane x, priority 3" },
  ]);
});

it("sets off commands and times", () => {
  const message = `it waits until 2026-11-18T00:00:00+00:00: \`laneway jobs approve ${ID}\``;
  expect(reasonParts({ code: "awaiting_approval", message }, "default")).toEqual([
    { kind: "text", text: "It waits until " },
    { kind: "time", at: "2026-11-18T00:00:00+00:00" },
    { kind: "text", text: ": " },
    { kind: "command", text: `laneway jobs approve ${ID}` },
  ]);
});

it("finds lengths of time", () => {
  const message = "it is due in 5660 s, at 2026-11-18T02:35:09+00:00 (retry 1 of 3)";
  expect(reasonParts({ code: "delayed", message }, "default")).toEqual([
    { kind: "text", text: "It is due in " },
    { kind: "length", seconds: 5660 },
    { kind: "text", text: ", at " },
    { kind: "time", at: "2026-11-18T02:35:09+00:00" },
    { kind: "text", text: " (retry 1 of 3)" },
  ]);
});

it("does not take a longer name for the lane", () => {
  const message = "1 job waits before it in the lane default-slow";
  expect(reasonParts({ code: "behind_others", message }, "default")).toHaveLength(1);
});

it("leads to the workers where they are the cause", () => {
  expect(causePage("no_worker")?.path).toBe("/workers");
  expect(causePage("limit")).toBeNull();
});
