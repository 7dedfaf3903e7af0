import { ExactNumber } from "../../api/json";

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

/** `2.50 EUR`, `12,000 tokens`; null if there is no amount. */
function costText(cost: Record<string, unknown>): string | null {
  if (isNumber(cost.amount))
    return `${amount(cost.amount, true)} ${String(cost.currency ?? "")}`.trim();
  return isNumber(cost.tokens) ? `${amount(cost.tokens, false)} tokens` : null;
}

function amount(value: number | ExactNumber, isMoney: boolean): string {
  if (value instanceof ExactNumber) return value.source;
  const digits = isMoney && !Number.isInteger(value) ? 2 : 0;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: Math.max(digits, 6),
  });
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
