import { expect, it } from "vitest";
import { failedRead } from "./failedRead";

const error = new Error("no database");
const refetch = () => undefined;
const good = { error: null, failureReason: null, data: {}, refetch };

it("finds the read that failed", () => {
  expect(failedRead([good, { ...good, error }])?.error).toBe(error);
  expect(failedRead([good])).toBeNull();
});

it("says so before the last try, if there is nothing to show", () => {
  const retried = { ...good, failureReason: error };
  expect(failedRead([{ ...retried, data: undefined }])?.error).toBe(error);
  expect(failedRead([retried])).toBeNull();
});
