import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { colourTokens, contrastRatio, type Theme } from "../components/contrast";

const tokens = colourTokens(readFileSync(new URL("./tokens.css", import.meta.url), "utf8"));
const surfaces = [
  "surface-page",
  "surface",
  "surface-raised",
  "surface-sunken",
  "surface-hover",
  "surface-selected",
];
const states = [
  "queued",
  "analysing",
  "awaiting-approval",
  "waiting",
  "running",
  "completed",
  "failed",
  "cancelled",
  "warning",
  "info",
];

function colour(name: string, theme: Theme): string {
  const token = tokens.get(name);
  if (!token) throw new Error(`no colour token --${name}`);
  return token[theme];
}

const words: [string, string][] = [
  ...["text", "text-muted", "text-subtle", "accent-text", "danger-text"].flatMap((name) =>
    surfaces.map((surface): [string, string] => [name, surface]),
  ),
  ...["code-key", "code-string", "code-number", "code-keyword"].flatMap((name) =>
    ["surface", "surface-raised", "surface-sunken", "surface-hover"].map(
      (surface): [string, string] => [name, surface],
    ),
  ),
  ...states.flatMap((state) =>
    [`${state}-bg`, ...surfaces].map((surface): [string, string] => [`${state}-fg`, surface]),
  ),
  ...states.map((state): [string, string] => ["text", `${state}-bg`]),
  ...states.map((state): [string, string] => ["text-muted", `${state}-bg`]),
  ["text", "surface-active"],
  ["text-muted", "surface-active"],
  ["accent-text", "accent-soft"],
  ["text", "accent-soft"],
  ["accent-on", "accent"],
  ["accent-on", "accent-hover"],
  ["danger-on", "danger"],
  ["danger-on", "danger-hover"],
];

const marks: [string, string][] = [
  ...["focus", "border-control", "accent"].flatMap((name) =>
    ["surface-page", "surface", "surface-raised"].map((surface): [string, string] => [
      name,
      surface,
    ]),
  ),
  ...states.flatMap((state) =>
    ["surface-page", "surface", "surface-raised", "surface-hover"].map(
      (surface): [string, string] => [`${state}-mark`, surface],
    ),
  ),
];

describe.each(["light", "dark"] as const)("%s theme", (theme) => {
  test.each(words)("%s is readable on %s", (front, back) => {
    expect(contrastRatio(colour(front, theme), colour(back, theme))).toBeGreaterThanOrEqual(4.5);
  });

  test.each(marks)("%s is visible on %s", (front, back) => {
    expect(contrastRatio(colour(front, theme), colour(back, theme))).toBeGreaterThanOrEqual(3);
  });
});

test("contrast of black and white is 21", () => {
  expect(contrastRatio("#000000", "#ffffff")).toBeCloseTo(21);
  expect(contrastRatio("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});

const home = new URL("../", import.meta.url);
const sheets = readdirSync(home, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.endsWith(".css") && !path.endsWith("tokens.css"),
);

test.each(sheets)("%s takes its colours, corners and spaces from the tokens", (path) => {
  const rules = readFileSync(new URL(path, home), "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
  expect(rules).not.toMatch(/:[^;{]*#[0-9a-f]{3,8}\b/i);
  expect(rules).not.toMatch(/(rgb|hsl)a?\(/);
  expect(rules).not.toMatch(/border-radius:[^;]*[0-9]px/);
  // A single pixel is a line, not a space.
  expect(rules).not.toMatch(/(padding|margin|gap)[a-z-]*:[^;]*([2-9]|\d\d)px/);
});
