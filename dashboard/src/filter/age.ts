const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86_400, w: 604_800 };
const PART = /(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)\s*/gy;

/** The seconds of `90s`, `15m`, `1h 30m`, `2d`; null if it is not an age. */
export function parseAge(text: string): number | null {
  const wanted = text.trim().toLowerCase();
  let [seconds, end] = [0, 0];
  for (const [part, amount, unit] of wanted.matchAll(PART)) {
    seconds += Number(amount) * (UNITS[unit ?? ""] ?? 0);
    end += part.length;
  }
  return wanted !== "" && end === wanted.length ? seconds : null;
}
