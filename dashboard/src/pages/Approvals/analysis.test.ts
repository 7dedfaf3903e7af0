import { describe, expect, it } from "vitest";
import { parseJson } from "../../api/json";
import { analysisParts } from "./analysis";

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

it("takes plan and warnings apart", () => {
  expect(analysisParts({ plan: { a: 1 }, cost: null, warnings: ["slow"] })).toEqual({
    plan: { a: 1 },
    cost: null,
    warnings: ["slow"],
  });
  expect(analysisParts("only text").plan).toBe("only text");
});
