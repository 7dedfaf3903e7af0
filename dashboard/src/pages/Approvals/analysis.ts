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

/** `2.50 EUR`, `12,000 tokens`; null if there is no amount. */
function costText(cost: Record<string, unknown>): string | null {
  if (isNumber(cost.amount))
    return `${amountText(cost.amount, true)} ${String(cost.currency ?? "")}`.trim();
  return isNumber(cost.tokens) ? `${amountText(cost.tokens, false)} tokens` : null;
}

function amountText(value: number | ExactNumber, isMoney: boolean): string {
  return value instanceof ExactNumber ? value.source : amount(value, isMoney);
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
