import type { components } from "../../api";
import { Problem } from "../../api/problem";
import { duration, plural } from "../../format";
import type { FieldWords } from "../../history";
import { changedFields, listDifference } from "../../history/changes";

type Lane = components["schemas"]["LaneStatusOut"];
export type LaneChange = components["schemas"]["LaneChange"];

/** The settings of a lane that people edit. */
export type LaneSettings = Pick<
  Lane,
  | "max_slots"
  | "poll_interval_ms"
  | "stale_timeout_minutes"
  | "lease_seconds"
  | "enabled"
  | "job_types"
>;

/** The settings of a lane that an operator creates without saying more. */
export const NEW_LANE: LaneSettings = {
  max_slots: 1,
  poll_interval_ms: 5000,
  stale_timeout_minutes: 30,
  lease_seconds: 30,
  enabled: true,
  job_types: [],
};

export function settingsOf(lane: LaneSettings): LaneSettings {
  const { max_slots, poll_interval_ms, stale_timeout_minutes } = lane;
  const { lease_seconds, enabled, job_types } = lane;
  return { max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, enabled, job_types };
}

/** What to send: only what differs. */
export function laneChange(before: LaneSettings, after: LaneSettings): LaneChange {
  const changed = changedFields(settingsOf(before), settingsOf(after));
  return Object.fromEntries(changed.map(({ field, after: value }) => [field, value]));
}

/** `2 → 3 slots`, `drained`: the changes in one line. */
export function changeWords(before: LaneSettings, after: LaneSettings): string {
  const changed = changedFields(settingsOf(before), settingsOf(after));
  return changed.map(({ field, before: was, after: is }) => sentence(field, was, is)).join(", ");
}

function sentence(field: string, before: unknown, after: unknown): string {
  if (field === "max_slots") {
    if (before === null || after === null) return `slots ${slots(before)} → ${slots(after)}`;
    return `${before} → ${plural(Number(after), "slot")}`;
  }
  if (field === "enabled") return after ? "resumed" : "drained";
  if (field === "job_types") {
    const { added, gone } = listDifference(before, after);
    return [
      ...(added.length > 0 ? [`with ${added.join(", ")}`] : []),
      ...(gone.length > 0 ? [`without ${gone.join(", ")}`] : []),
    ].join(", ");
  }
  const { name, value } = LANE_WORDS;
  return `${name(field).toLowerCase()} ${value(field, before)} → ${value(field, after)}`;
}

const slots = (value: unknown) => (value === null ? "unbounded" : String(value));

/** When a change is in force: each worker reads the settings once per poll interval. */
export function appliesWithin(lane: Pick<Lane, "poll_interval_ms">): string {
  return `applies within ${duration(lane.poll_interval_ms / 1000)}`;
}

const NAMES: Record<string, string> = {
  max_slots: "Slots",
  poll_interval_ms: "Poll interval",
  stale_timeout_minutes: "Stale timeout",
  lease_seconds: "Lease",
  enabled: "State",
  job_types: "Job types",
};

/** The words for a lane's settings, in forms and in its history. */
export const LANE_WORDS: FieldWords = {
  name: (field) => NAMES[field] ?? field.replaceAll("_", " "),
  value: (field, value) => {
    if (field === "max_slots") return slots(value ?? null);
    if (value === null || value === undefined) return "none";
    if (field === "poll_interval_ms") return duration(Number(value) / 1000);
    if (field === "stale_timeout_minutes") return duration(Number(value) * 60);
    if (field === "lease_seconds") return duration(Number(value));
    if (field === "enabled") return value ? "open" : "drained";
    if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
    return String(value);
  },
};

/** What the server says about a field of a form; errors about list items belong to the list. */
export function fieldError(error: Error | null, field: string): string | null {
  if (!(error instanceof Problem)) return null;
  const found = error.fields.filter((each) => fieldName(each.field) === field);
  return found.length === 0 ? null : found.map(({ rule }) => rule).join("; ");
}

/** Whether the server's refusal is about a field that the form shows. */
export function isAboutFields(error: Error | null, fields: string[]): boolean {
  if (!(error instanceof Problem) || error.fields.length === 0) return false;
  return error.fields.every((each) => fields.includes(fieldName(each.field)));
}

function fieldName(path: string): string {
  const parts = path.split(/[.[\]]+/).filter((part) => part !== "" && part !== "body");
  return parts[0] ?? "";
}
