import { duration } from "./duration";

export type Zone = "local" | "utc";

/** `8 s ago`, `4 min ago`, `in 1 h 20 min`, `now`. What is past needs one unit only. */
export function relative(at: string, now: number): string {
  const seconds = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return at;
  // Clocks of browsers and servers differ a little.
  if (Math.abs(seconds) < 1.5) return "now";
  if (Math.abs(seconds) < 59.5) {
    const length = `${Math.round(Math.abs(seconds))} s`;
    return seconds > 0 ? `${length} ago` : `in ${length}`;
  }
  if (seconds < 0) return `in ${duration(-seconds)}`;
  const [count = "", unit = ""] = duration(seconds).split(" ");
  return `${count} ${unit} ago`;
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
