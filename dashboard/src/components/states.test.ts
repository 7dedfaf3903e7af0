import { expect, it } from "vitest";
import { countStates, stateWords, urgentState } from "./states";

const jobs = ["waiting", "completed", "approved", "completed"].map((status) => ({ status }));

it("counts jobs by state, the ended ones first", () => {
  expect(stateWords(countStates(jobs))).toBe("2 completed, 1 queued, 1 waiting");
  expect(stateWords(countStates([]))).toBe("no jobs");
  expect(stateWords(countStates([{ status: "awaiting_approval" }]))).toBe("1 awaiting approval");
});

it("counts states that are newer than the dashboard", () => {
  expect(stateWords(countStates([{ status: "paused" }]))).toBe("1 paused");
});

it("lets the most urgent state stand for several", () => {
  expect(urgentState(countStates(jobs))).toBe("approved");
  expect(urgentState(countStates([...jobs, { status: "failed" }]))).toBe("failed");
  expect(urgentState({ completed: 3 })).toBe("completed");
});
