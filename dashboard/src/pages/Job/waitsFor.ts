import type { components } from "../../api";
import { plural } from "../../format";

export type WaitsFor = components["schemas"]["WaitsForOut"];

/** What a job waits for, in the middle of a sentence: `3 sub-jobs`, `the event paid (order-7)`. */
export function waitWords(wait: WaitsFor): string {
  switch (wait.kind) {
    case "jobs":
      return plural(wait.missing ?? 0, "job");
    case "sub_jobs":
      return plural(wait.missing ?? 0, "sub-job");
    case "event":
      return `the event ${wait.event ?? ""}${wait.key ? ` (${wait.key})` : ""}`;
    case "sleep":
      return "its time";
  }
}

/** What a job waits for, as its timeline says it. */
export function waitTitle(wait: WaitsFor | null | undefined): string {
  if (!wait) return "Waiting";
  return wait.kind === "sleep" ? "Sleeps" : `Waits for ${waitWords(wait)}`;
}
