import { expect, it } from "vitest";
import type { components } from "../../api";
import { holdWords, LIMIT_WORDS, otherHolders, rateWords } from "./limits";

type Limit = components["schemas"]["LimitStatusOut"];

const limit = (change: Partial<Limit>): Limit => ({
  name: "openai",
  max_concurrent: 8,
  rate_count: null,
  rate_period_s: null,
  scope: "cluster",
  updated_at: null,
  updated_by: null,
  running: 2,
  busiest: 1,
  waiting: 0,
  waiting_is_capped: false,
  holders: [],
  jobs: [],
  ...change,
});

it.each([
  [10, 60, "10 per min"],
  [3, 5, "3 per 5 s"],
  [null, null, null],
])("shows a rate of %s in %s s as %s", (count, period, words) => {
  expect(rateWords(count, period)).toBe(words);
});

it("says where holders are counted", () => {
  expect(holdWords(limit({}))).toBe("2 holders");
  expect(holdWords(limit({ scope: "host" }))).toBe("1 at the busiest host, 2 in all");
});

it("tells processes from jobs", () => {
  const holders = ["2 jobs of type ask", "a job of type draw", "a process on web-1"];
  expect(otherHolders(limit({ holders }))).toEqual(["a process on web-1"]);
});

it("shows values as people read them", () => {
  expect(LIMIT_WORDS.value("max_concurrent", null)).toBe("unbounded");
  expect(LIMIT_WORDS.value("rate_period_s", 60)).toBe("1 min");
  expect(LIMIT_WORDS.value("rate_count", null)).toBe("none");
});
