import { describe, expect, it } from "vitest";
import { ExactNumber, parseJson, writeJson } from "./json";

describe("parseJson", () => {
  it("keeps the digits of integers beyond 2^53", () => {
    expect(parseJson('{"id": 9007199254740993}')).toEqual({
      id: new ExactNumber("9007199254740993"),
    });
  });

  it("keeps numbers beyond the range of a double", () => {
    expect(parseJson("1e400")).toEqual(new ExactNumber("1e400"));
  });

  it.each(["0", "-1.50", "1e5", "0.30000000000000004", "123456789012345", "0.000001234", "1e-07"])(
    "reads %s as a plain number",
    (text) => {
      expect(parseJson(text)).toBe(Number(text));
    },
  );
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
