import { describe, expect, it } from "vitest";
import { ExactNumber, parseJson, writeJson } from "../../../api/json";
import { type Field, fieldsOf, payloadOf, textsOf } from "./payloadFields";

const SCHEMA = {
  type: "object",
  additionalProperties: false,
  required: ["path"],
  properties: {
    path: { type: "string", description: "Where it lies" },
    pages: { type: "integer", default: 10, minimum: 1, maximum: 99 },
    ratio: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
    is_fast: { type: "boolean", default: false },
    color: { $ref: "#/$defs/Color", default: "red" },
    parts: { type: "array", items: { type: "string" }, default: [] },
  },
  $defs: { Color: { enum: ["red", "blue"], type: "string" } },
};

const fields = fieldsOf(SCHEMA) as Field[];

it("makes one field of each argument", () => {
  expect(fields.map(({ name, kind, isRequired }) => [name, kind, isRequired])).toEqual([
    ["path", "text", true],
    ["pages", "integer", false],
    ["ratio", "number", false],
    ["is_fast", "boolean", false],
    ["color", "choice", false],
    ["parts", "json", false],
  ]);
  expect(fields[4]?.choices).toEqual(['"red"', '"blue"']);
  expect(fields[1]?.hint).toBe("1 to 99");
  expect(fields[0]?.hint).toBe("Where it lies");
});

it.each([null, true, { anyOf: [] }, { type: "object", properties: 3 }])(
  "makes no form of %j",
  (schema) => expect(fieldsOf(schema)).toBeNull(),
);

describe("payload", () => {
  it("leaves out what is empty", () => {
    const { payload, errors } = payloadOf(fields, { path: "a", pages: "", ratio: " " });
    expect(payload).toEqual({ path: "a" });
    expect(errors).toEqual({});
  });

  it("keeps every digit of a number", () => {
    const { payload } = payloadOf(fields, { path: "a", pages: "9007199254740993" });
    expect(payload.pages).toBeInstanceOf(ExactNumber);
    expect(writeJson(payload)).toBe('{"path":"a","pages":9007199254740993}');
  });

  it("names what is wrong", () => {
    const { errors } = payloadOf(fields, { path: "", pages: "1.5", ratio: "x", parts: "[" });
    expect(Object.keys(errors)).toEqual(["path", "pages", "ratio", "parts"]);
    expect(errors.pages).toBe("must be a whole number");
  });

  it.each([
    '{"path":"a","pages":12345678901234567890,"ratio":0.5,"is_fast":true,"color":"blue"}',
    '{"path":"a","parts":["x",{"y":1}]}',
  ])("comes back from a form: %s", (text) => {
    const texts = textsOf(fields, parseJson(text));
    expect(writeJson(payloadOf(fields, texts ?? {}).payload)).toBe(text);
  });

  it.each([
    '{"path":"a","other":1}',
    '{"path":3}',
    "[1]",
    '{"path":""}',
    '{"path":"a","pages":1.5}',
  ])("has no form for %s", (text) => expect(textsOf(fields, parseJson(text))).toBeNull());
});
