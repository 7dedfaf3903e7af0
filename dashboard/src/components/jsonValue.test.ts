import { expect, test } from "vitest";
import { isExactNumber, jsonKind, jsonText, scalarText } from "./jsonValue";

class Exact {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

test("numbers keep their exact digits", () => {
  expect(scalarText(new Exact("12345678901234567890"))).toBe("12345678901234567890");
  expect(jsonText({ n: new Exact("1.10") })).toBe('{\n  "n": 1.10\n}');
});

test("an object with a source key is an object", () => {
  expect(isExactNumber({ source: "1" })).toBe(false);
  expect(jsonKind({ source: "1" })).toBe("object");
  expect(jsonKind(Object.assign(Object.create(null), { source: "1" }))).toBe("object");
  expect(jsonKind(new Exact("1"))).toBe("number");
});

test("text equals JSON.stringify for plain values", () => {
  for (const value of [
    null,
    true,
    'a\n"b"',
    [],
    {},
    [[], {}, [1, [2]]],
    { a: { b: [1, "x", null] }, c: false, "": 0 },
    JSON.parse('{"__proto__": {"x": 1}}'),
  ]) {
    expect(jsonText(value)).toBe(JSON.stringify(value, null, 2));
  }
});

test("deep values do not overflow the stack", () => {
  let deep: unknown = 1;
  for (let at = 0; at < 5_000; at += 1) deep = [deep];
  expect(jsonText(deep, 0)).toContain("1");
});

test("shows characters that would reorder a text as escapes", () => {
  expect(scalarText("\u202elive")).toBe('"\\u202elive"');
  expect(JSON.parse(jsonText({ "\u2066a": "\u200fb" }))).toEqual({ "\u2066a": "\u200fb" });
  expect(jsonText({ "\u2066a": "\u200fb" })).toContain("\\u2066a");
});
