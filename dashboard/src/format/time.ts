import { duration } from "./duration";

export type Zone = "local" | "utc";

/** `8 s ago`, `in 3 min`, `now`. */
export function relative(at: string, now: number): string {
  const seconds = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return at;
  // Clocks of browsers and servers differ a little.
  if (Math.abs(seconds) < 1.5) return "now";
  const length = coarse(Math.abs(seconds));
  return seconds > 0 ? `${length} ago` : `in ${length}`;
}

function coarse(seconds: number): string {
  return seconds < 60 ? `${Math.round(seconds)} s` : duration(seconds);
}

/** `2026-11-17 14:03:22 UTC`, in the browser's zone or in UTC. */
export function absolute(at: string, zone: Zone): string {
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return at;
  const parts = new Intl.DateTimeFormat("en-GB", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short",
    ...(zone === "utc" && { timeZone: "UTC" }),
  }).formatToParts(moment);
  const part = (type: string) => parts.find((each) => each.type === type)?.value ?? "";
  const date = `${part("year")}-${part("month")}-${part("day")}`;
  const time = `${part("hour")}:${part("minute")}:${part("second")}`;
  return `${date} ${time} ${part("timeZoneName")}`;
}

/** Seconds between two times; null if one is missing. Never negative. */
export function between(
  from: string | null | undefined,
  to: string | null | undefined,
): number | null {
  if (!from || !to) return null;
  return Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
}
