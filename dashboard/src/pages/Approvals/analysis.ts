import { ExactNumber } from "../../api/json";
import { amount } from "../../format";

/** What an analysis found out: a plan, a cost and warnings, each only if it is there. */
export type AnalysisParts = { plan: unknown; cost: string | null; warnings: string[] };

const NONE: AnalysisParts = { plan: null, cost: null, warnings: [] };

export function analysisParts(analysis: unknown): AnalysisParts {
  if (!isRecord(analysis)) return { ...NONE, plan: analysis ?? null };
  const { plan = null, cost, warnings } = analysis;
  return {
    plan,
    cost: isRecord(cost) ? costText(cost) : null,
    warnings: Array.isArray(warnings) ? warnings.map(String) : [],
  };
}

/** The cost of many analyses, by unit, and how many have no estimate. */
export function totalCost(analyses: readonly unknown[]): { words: string; unknown: number } {
  const sums = new Map<string, { value: number; isMoney: boolean }>();
  let unknown = 0;
  for (const analysis of analyses) {
    const cost = isRecord(analysis) && isRecord(analysis.cost) ? costOf(analysis.cost) : null;
    if (cost === null) {
      unknown += 1;
      continue;
    }
    const { isMoney, unit } = cost;
    const before = sums.get(unit)?.value ?? 0;
    sums.set(unit, { value: before + numberOf(cost.value), isMoney });
  }
  const words = [...sums].map(([unit, { value, isMoney }]) =>
    `${amount(value, isMoney)} ${unit}`.trim(),
  );
  return { words: words.join(" and "), unknown };
}

type Cost = { value: number | ExactNumber; unit: string; isMoney: boolean };

function costOf({ amount, currency, tokens }: Record<string, unknown>): Cost | null {
  if (isNumber(amount)) return { value: amount, unit: String(currency ?? ""), isMoney: true };
  return isNumber(tokens) ? { value: tokens, unit: "tokens", isMoney: false } : null;
}

/** `2.50 EUR`, `12,000 tokens`; null if there is no amount. */
function costText(cost: Record<string, unknown>): string | null {
  const found = costOf(cost);
  if (found === null) return null;
  const { value, unit, isMoney } = found;
  const text = value instanceof ExactNumber ? value.source : amount(value, isMoney);
  return `${text} ${unit}`.trim();
}

function numberOf(value: number | ExactNumber): number {
  return value instanceof ExactNumber ? Number(value.source) : value;
}

function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof ExactNumber)
  );
}
