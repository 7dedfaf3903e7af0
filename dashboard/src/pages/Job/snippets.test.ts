import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../api/json";
import { pythonValue } from "./python";
import { shellQuote, submitSnippets } from "./snippets";

const HOSTILE = [
  "it's",
  "$(touch pwned) `id` $HOME",
  'a "b" \\ c',
  "two\nlines",
  "--force",
  "; rm -rf / #",
  "@/etc/passwd",
  "naïve 🦀 \u202e",
  "",
];

const job = {
  job_type: "it's $HOME",
  payload: parseJson('{"id": 12345678901234567890123, "note": "say \\"hi\\"; it\'s `id`"}'),
  priority: -5,
  tags: ["a b", "$(id)"],
  workspace: "team'1",
  max_retries: 3,
  concurrency_key: "-k",
};

const text = (id: string) =>
  submitSnippets("https://jobs.example.org/laneway/", job).find((one) => one.id === id)?.text ?? "";

/** The words that a shell passes on, each followed by a NUL. */
const words = (line: string) =>
  execFileSync("sh", ["-c", `printf '%s\\0' ${line}`], {
    env: { LANEWAY_TOKEN: "from the environment" },
  })
    .toString()
    .split("\0")
    .slice(0, -1);

it.each(HOSTILE)("passes %j through a shell unchanged", (value) => {
  expect(words(shellQuote(value))).toEqual([value]);
});

describe("curl", () => {
  it("sends the whole job with its digits", () => {
    const [program, ...given] = words(text("curl"));
    expect(program).toBe("curl");
    expect(given).toContain("https://jobs.example.org/laneway/jobs");
    expect(given).toContain("Authorization: Bearer from the environment");
    expect(given.at(-1)).toContain("12345678901234567890123");
    expect(parseJson(given.at(-1) ?? "")).toMatchObject({ job_type: "it's $HOME", priority: -5 });
  });
});

describe("the command", () => {
  it("cannot take a value for an option", () => {
    const given = words(text("cli"));
    const end = given.indexOf("--");
    expect(given.slice(end + 1)[0]).toBe("it's $HOME");
    expect(given.slice(0, end)).toContain("--tag=$(id)");
    expect(given.slice(0, end)).toContain("--concurrency-key=-k");
    expect(given.at(-1)).toContain("12345678901234567890123");
  });
});

describe("Python", () => {
  it("reads the token from the environment", () => {
    expect(text("python")).toContain('os.environ["LANEWAY_TOKEN"]');
    expect(text("python")).toContain('"https://jobs.example.org/laneway"');
  });

  it.each([
    [null, "None"],
    [true, "True"],
    [parseJson("12345678901234567890123"), "12345678901234567890123"],
    ['a "b" \\ c', '"a \\"b\\" \\\\ c"'],
    ["two\nlines\u0000", '"two\\nlines\\x00"'],
    ["\u202e\u{e0041}", '"\\u202e\\U000e0041"'],
    [{ a: [1, 2] }, '{"a": [1, 2]}'],
    [[], "[]"],
  ])("writes %j", (value, expected) => expect(pythonValue(value)).toBe(expected));

  it("breaks long values into lines", () => {
    expect(pythonValue({ text: "x".repeat(60) }, "  ")).toBe(
      `{\n      "text": "${"x".repeat(60)}",\n  }`,
    );
  });
});
