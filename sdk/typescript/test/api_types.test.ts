import assert from "node:assert/strict";
import { describe, it } from "node:test";

const { apiTypes } = (await import(new URL("../../scripts/api_types.mjs", import.meta.url).href)) as {
  apiTypes: (document: object, operations: string[]) => string;
};

const stream = {
  operationId: "stream_job",
  responses: {
    "200": { content: { "text/event-stream": { itemSchema: { oneOf: [{ properties: { event: { enum: ["job.a"] } } }] } } } },
  },
};

function written(schema: object): string {
  const document = {
    paths: {
      "/things": {
        get: stream,
        post: {
          operationId: "make_thing",
          parameters: [{ in: "header", name: "Idempotency-Key" }],
          requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/ThingOut" } } } },
          responses: { "202": {} },
        },
      },
    },
    components: { schemas: { Problem: { type: "object", properties: {} }, ThingOut: schema } },
  };
  return apiTypes(document, ["make_thing"]);
}

describe("the types of the API", () => {
  it("follow its schemas", () => {
    const text = written({
      type: "object",
      description: "A thing.",
      required: ["names"],
      properties: {
        names: { type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } },
        kind: { enum: ["a", "b"], description: "Its kind" },
        by: { type: "object", additionalProperties: { type: "integer" } },
        self: { $ref: "#/components/schemas/ThingOut" },
        any: {},
      },
    });
    const type = /export interface Thing (\{.*?^\})/ms.exec(text)?.[1];
    assert.equal(
      type,
      `{
  names: (string | null)[];
  /** Its kind */
  kind?: "a" | "b" | undefined;
  by?: {
    [name: string]: number;
  } | undefined;
  self?: Thing | undefined;
  any?: unknown;
}`,
    );
    assert.match(text, /make_thing: \{"method":"POST","path":"\/things","isKeyed":true\}/);
    assert.match(text, /\/\*\* A thing\. \*\/\nexport interface Thing/);
  });

  it("are never a guess", () => {
    assert.throws(() => written({ type: "object", allOf: [] }), /allOf of a schema is not understood/);
    assert.throws(() => written({ type: "tuple" }), /the type tuple is not understood/);
  });

  it("need every operation that the client calls", () => {
    assert.throws(() => apiTypes({ paths: {}, components: { schemas: { Problem: {} } } }, ["gone"]), /no operation gone/);
  });
});
