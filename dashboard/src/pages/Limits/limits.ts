import type { components } from "../../api";
import { duration, plural } from "../../format";
import type { FieldWords } from "../../history";

type Limit = components["schemas"]["LimitStatusOut"];
export type LimitSettings = Required<components["schemas"]["LimitSettings"]>;

export const NEW_LIMIT: LimitSettings = {
  max_concurrent: 1,
  rate_count: null,
  rate_period_s: null,
  scope: "cluster",
};

export function limitSettings(limit: Limit): LimitSettings {
  const { max_concurrent, rate_count, rate_period_s, scope } = limit;
  return { max_concurrent, rate_count, rate_period_s, scope };
}

/** `10 per min`, `3 per 5 s`; null without a rate. */
export function rateWords(count: number | null, periodS: number | null): string | null {
  if (count === null || periodS === null) return null;
  const unit = { 1: "s", 60: "min", 3600: "h", 86400: "day" }[periodS];
  return `${count} per ${unit ?? duration(periodS)}`;
}

/** How many hold it where most do, and where that is counted. */
export function holdWords(limit: Limit): string {
  if (limit.scope === "cluster") return plural(limit.running, "holder");
  return `${limit.busiest} at the busiest ${limit.scope}, ${limit.running} in all`;
}

/** The holders that are no jobs, in the API's words: processes outside of jobs, by host. */
export function otherHolders(limit: Limit): string[] {
  return limit.holders.filter((words) => !/^(a job|\d+ jobs) of type /.test(words));
}

const NAMES: Record<string, string> = {
  max_concurrent: "At once",
  rate_count: "Starts per period",
  rate_period_s: "Period",
  scope: "Scope",
};

export const LIMIT_WORDS: FieldWords = {
  name: (field) => NAMES[field] ?? field.replaceAll("_", " "),
  value: (field, value) => {
    if (value === null || value === undefined) {
      return field === "max_concurrent" ? "unbounded" : "none";
    }
    return field === "rate_period_s" ? duration(Number(value)) : String(value);
  },
};
