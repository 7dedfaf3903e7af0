import { ExactNumber, writeJson } from "../../api/json";

type Values = Record<string, unknown> | null;

const MOST = 2;
const LONGEST = 40;

/** The changed values in a few words: `max_slots 2 → 3`; null if nothing changed. */
export function changeWords(before: Values, after: Values): string | null {
  if (before === null || after === null) return null;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => writeJson(before[name]) !== writeJson(after[name]));
  if (changed.length === 0) return null;
  const words = changed
    .slice(0, MOST)
    .map((name) => `${name} ${short(before[name])} → ${short(after[name])}`);
  const rest = changed.length - MOST;
  return words.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

// Values that say nothing to a person who skims the list.
const DULL = /^(id|upto|hint|.*_at|.*_by|is_more|dry_run)$/;

/** A few values of what was created, removed or started: `role viewer, scope all`. */
export function valueWords(values: Record<string, unknown>): string {
  return Object.entries(values)
    .filter(([name, value]) => !DULL.test(name) && value !== null && !isNested(value))
    .slice(0, MOST + 1)
    .map(([name, value]) => `${name} ${short(value)}`)
    .join(", ");
}

const isNested = (value: unknown) => typeof value === "object" && !(value instanceof ExactNumber);

function short(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "none" : writeJson(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

/** `lane.type_moved` → `lane type moved`; a request stays as it is. */
export function actionWords(action: string): string {
  return /^[a-z_.]+$/.test(action) ? action.replace(/[._]/g, " ") : action;
}
