import { describe, expect, it } from "vitest";
import { parseJson } from "../../api/json";
import { analysisParts, totalCost } from "./analysis";

describe("the cost of an analysis", () => {
  it.each([
    [{ cost: { amount: 2.5, currency: "EUR" } }, "2.50 EUR"],
    [{ cost: { amount: 1200, currency: "USD" } }, "1,200 USD"],
    [{ cost: { amount: 0.000125, currency: "USD" } }, "0.000125 USD"],
    [{ cost: { tokens: 12_000 } }, "12,000 tokens"],
    [{ cost: null }, null],
    [{ cost: { amount: "much" } }, null],
    [null, null],
    [[1], null],
  ])("of %j is %s", (analysis, text) => expect(analysisParts(analysis).cost).toBe(text));

  it("keeps the digits", () => {
    const analysis = parseJson('{"cost": {"tokens": 12345678901234567890}}');
    expect(analysisParts(analysis).cost).toBe("12345678901234567890 tokens");
  });
});

describe("the cost of many analyses", () => {
  const of = (amount: number, currency = "USD") => ({ cost: { amount, currency } });
  it("is the sum", () => {
    expect(totalCost([of(149.04), of(0.1), of(0.2)])).toEqual({ words: "149.34 USD", unknown: 0 });
  });
  it("keeps units apart and counts what has no estimate", () => {
    const analyses = [of(2), of(3, "EUR"), { cost: { tokens: 12_000 } }, null, { cost: null }];
    expect(totalCost(analyses)).toEqual({ words: "2 USD and 3 EUR and 12,000 tokens", unknown: 2 });
  });
  it("has no words without an estimate", () => {
    expect(totalCost([null])).toEqual({ words: "", unknown: 1 });
  });
  it("adds numbers of any length", () => {
    const analysis = parseJson('{"cost": {"tokens": 12345678901234567890}}');
    expect(totalCost([analysis]).words).toBe("12,345,678,901,234,567,000 tokens");
  });
});

it("takes plan and warnings apart", () => {
  expect(analysisParts({ plan: { a: 1 }, cost: null, warnings: ["slow"] })).toEqual({
    plan: { a: 1 },
    cost: null,
    warnings: ["slow"],
  });
  expect(analysisParts("only text").plan).toBe("only text");
});
