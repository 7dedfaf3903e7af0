import { expect, it } from "vitest";
import { cancelOf } from "./cancel";

const job = (given: object) => ({
  status: "cancelled" as const,
  cancel_requested_at: null,
  cancelled_by: null,
  cancel_reason: null,
  ...given,
});

it.each([
  [
    { cancelled_by: "eve", cancel_reason: "rejected: too many shards" },
    { kind: "rejected", by: "eve", reason: "too many shards" },
  ],
  [{ cancelled_by: "laneway" }, { kind: "expired", by: null, reason: null }],
  [
    { cancelled_by: "laneway", cancel_reason: "approval expired" },
    { kind: "expired", by: null, reason: null },
  ],
  [
    { cancelled_by: "laneway", cancel_reason: "after job 01a1: failed" },
    { kind: "after", by: null, reason: "after job 01a1: failed" },
  ],
  [
    { cancelled_by: "ada", cancel_requested_at: "2026-11-18T00:00:00Z", cancel_reason: "wrong" },
    { kind: "cancelled", by: "ada", reason: "wrong" },
  ],
  [{}, { kind: "cancelled", by: null, reason: null }],
])("tells how %j ended", (given, expected) => expect(cancelOf(job(given))).toEqual(expected));
