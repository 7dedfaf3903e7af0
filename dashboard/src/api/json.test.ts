import { describe, expect, it } from "vitest";
import { ExactNumber, parseJson, writeJson } from "./json";

describe.each([true, false])("parseJson with source text: %s", (hasSourceText) => {
  const parse = (text: string) => parseJson(text, hasSourceText);

  it("keeps the digits of integers beyond 2^53", () => {
    expect(parse('{"id": 9007199254740993}')).toEqual({
      id: new ExactNumber("9007199254740993"),
    });
  });

  it("keeps numbers beyond the range of a double", () => {
    expect(parse("1e400")).toEqual(new ExactNumber("1e400"));
  });

  it.each(["0", "-1.50", "1e5", "0.30000000000000004", "123456789012345", "0.000001234", "1e-07"])(
    "reads %s as a plain number",
    (text) => {
      expect(parse(text)).toBe(Number(text));
    },
  );

  it("keeps digits in strings, keys and nested values apart", () => {
    const text =
      '{"9007199254740993":["\\"9007199254740993",-9007199254740993.5,{"a":1e400}],"b":[]}';
    expect(parse(text)).toEqual({
      "9007199254740993": [
        '"9007199254740993',
        new ExactNumber("-9007199254740993.5"),
        { a: new ExactNumber("1e400") },
      ],
      b: [],
    });
  });

  it.each(["", "{", "[1,]", "012345678901234567890", '"a', "12345678901234567890x", "nul"])(
    "refuses %j",
    (text) => {
      expect(() => parse(text)).toThrow(SyntaxError);
    },
  );

  it("reads a long text in linear time", () => {
    const text = `["${"\\\\".repeat(500_000)}",${"9007199254740993,".repeat(50_000)}1]`;
    expect(parse(text)).toHaveLength(50_002);
  });
});

describe("writeJson", () => {
  it("writes what parseJson read", () => {
    const text = '{"a":[1,9007199254740993,{"b":null}],"c":"\\u2028","d":{}}';
    expect(writeJson(parseJson(text))).toBe(text.replace("\\u2028", "\u2028"));
  });

  it("indents", () => {
    expect(writeJson({ a: [1, 2], b: {} }, 2)).toBe(
      '{\n  "a": [\n    1,\n    2\n  ],\n  "b": {}\n}',
    );
  });
});
