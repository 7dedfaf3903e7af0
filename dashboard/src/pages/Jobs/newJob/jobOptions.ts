import type { components } from "../../../api";
import { parseAge } from "../../../filter/age";

export type JobRequest = components["schemas"]["JobRequest"];

/** When a new job may start. */
export type StartKind = "now" | "delay" | "at";

/** The options of a new job as a person types them; empty ones are left out. */
export type JobOptions = {
  priority: string;
  start: StartKind;
  delay: string;
  runAt: string;
  tags: string;
  uniqueKey: string;
  workspace: string;
  maxRetries: string;
};

export const NO_OPTIONS: JobOptions = {
  priority: "",
  start: "now",
  delay: "",
  runAt: "",
  tags: "",
  uniqueKey: "",
  workspace: "",
  maxRetries: "",
};

/** The part of a request that the options give. */
type Given = Omit<JobRequest, "job_type" | "payload" | "after">;
type OptionErrors = Partial<Record<keyof JobOptions, string>>;

/** The part of the request that the options give, and what is wrong with which option. */
export function readOptions(options: JobOptions): {
  request: Given;
  errors: OptionErrors;
} {
  const errors: OptionErrors = {};
  const request: Given = {
    tags: options.tags.split(/[\s,]+/).filter(Boolean),
    workspace: options.workspace.trim() || "default",
  };
  const whole = (name: "priority" | "maxRetries") => {
    const text = options[name].trim();
    if (text === "") return null;
    if (/^-?\d{1,5}$/.test(text)) return Number(text);
    errors[name] = "must be a whole number";
    return null;
  };
  const [priority, maxRetries] = [whole("priority"), whole("maxRetries")];
  if (priority !== null) request.priority = priority;
  if (maxRetries !== null) request.max_retries = maxRetries;
  if (options.uniqueKey.trim() !== "") request.unique_key = options.uniqueKey.trim();
  if (options.start === "delay") {
    const delay = parseAge(options.delay);
    if (delay === null) errors.delay = "must be a time span such as 90s, 15m or 1h 30m";
    else request.delay = delay;
  } else if (options.start === "at") {
    const at = new Date(options.runAt);
    if (Number.isNaN(at.getTime())) errors.runAt = "must be a date and a time";
    else request.run_at = at.toISOString();
  }
  return { request, errors };
}
