import { expect, it } from "vitest";
import { type WaitsFor, waitTitle } from "./waitsFor";

const wait = (given: Partial<WaitsFor>) => ({ event: null, key: null, ...given }) as WaitsFor;

it.each([
  [wait({ kind: "jobs", missing: 1 }), "Waits for 1 job"],
  [wait({ kind: "sub_jobs", missing: 3 }), "Waits for 3 sub-jobs"],
  [wait({ kind: "event", event: "paid", key: "order-7" }), "Waits for the event paid (order-7)"],
  [wait({ kind: "event", event: "paid", key: "" }), "Waits for the event paid"],
  [wait({ kind: "sleep" }), "Sleeps"],
  [null, "Waiting"],
])("says what %j waits for", (given, words) => expect(waitTitle(given)).toBe(words));
