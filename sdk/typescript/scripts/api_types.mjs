// Writes the types and routes of some operations of an OpenAPI document as a TypeScript module.
// A schema that it does not understand is an error: a type is never a guess.

const ANNOTATIONS = ["title", "description", "default", "examples", "format", "pattern"];
const BOUNDS = ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"];
const UNDERSTOOD = new Set([
    ...["$ref", "type", "enum", "const", "anyOf", "items", "properties", "required"],
    ...["additionalProperties", ...ANNOTATIONS, ...BOUNDS],
]);
const PLAIN = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };
// The name of the schema is that of a global.
const NAMES = { ErrorOut: "JobError" };

/** The module for these operation ids, in their order, with all schemas that they need. */
export function apiTypes(document, operationIds) {
    const found = operationsOf(document);
    const schemas = new Map();
    const typeOf = (schema, indent = "") => writeType(schema, indent, need);
    const need = (name) => {
        if (!schemas.has(name)) {
            schemas.set(name, "");
            schemas.set(name, declaration(name, document.components.schemas[name], typeOf));
        }
        return typeName(name);
    };
    need("Problem");
    const routes = [];
    const operations = [];
    for (const id of operationIds) {
        const operation = found.get(id);
        if (operation === undefined) throw new Error(`the document has no operation ${id}`);
        routes.push(`  ${id}: ${JSON.stringify(route(operation))},\n`);
        operations.push(`${comment(operation.description, "  ")}  ${id}: ${shape(operation, typeOf)};\n`);
    }
    return [
        "// Generated from docs/reference/openapi.json by scripts/generate.mjs.\n",
        ...schemas.values(),
        `export type JobEventName = ${typeOf(eventNames(found.get("stream_job")))};\n`,
        `export interface Operations {\n${operations.join("")}}\n`,
        `export const routes = {\n${routes.join("")}} as const;\n`,
    ].join("\n");
}

function operationsOf({ paths }) {
    const found = new Map();
    for (const [path, methods] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(methods)) {
            found.set(operation.operationId, { ...operation, path, method: method.toUpperCase() });
        }
    }
    return found;
}

function route({ method, path, parameters = [] }) {
    const isKeyed = parameters.some((one) => one.in === "header" && one.name === "Idempotency-Key");
    return { method, path, isKeyed };
}

/** The query, body and result of an operation; parts that it does not have are `undefined`. */
function shape({ parameters = [], requestBody, responses }, typeOf) {
    const query = parameters.filter((one) => one.in === "query");
    const properties = Object.fromEntries(
        query.map(({ name, schema, description }) => [name, { description, ...schema }]),
    );
    const required = query.filter((one) => one.required).map((one) => one.name);
    const body = jsonOf(requestBody);
    const results = Object.entries(responses).flatMap(([status, response]) =>
        status.startsWith("2") ? (jsonOf(response) ?? []) : [],
    );
    const types = {
        query: query.length === 0 ? "undefined" : typeOf({ type: "object", properties, required }, "    "),
        body: body === undefined ? "undefined" : typeOf(body, "    "),
        result: union(results.map((one) => typeOf(one, "    ")), "undefined"),
    };
    const lines = Object.entries(types).map(([name, type]) => `    ${name}: ${type};\n`);
    return `{\n${lines.join("")}  }`;
}

function jsonOf(part) {
    return part?.content?.["application/json"]?.schema;
}

function eventNames(stream) {
    const { itemSchema } = stream.responses["200"].content["text/event-stream"];
    return { enum: itemSchema.oneOf.flatMap((one) => one.properties.event.enum) };
}

function declaration(name, schema, typeOf) {
    const type = typeOf(schema);
    const head = comment(schema.description, "");
    return type.startsWith("{") && schema.properties !== undefined
        ? `${head}export interface ${typeName(name)} ${type}\n`
        : `${head}export type ${typeName(name)} = ${type};\n`;
}

function typeName(schema) {
    return NAMES[schema] ?? schema.replace(/^.*__/, "").replace(/Out$/, "");
}

function writeType(schema, indent, need) {
    const unknown = Object.keys(schema).filter((key) => !UNDERSTOOD.has(key));
    if (unknown.length > 0) {
        throw new Error(`${unknown} of a schema is not understood: ${JSON.stringify(schema).slice(0, 200)}`);
    }
    const inner = (one) => writeType(one, indent, need);
    if (schema.$ref !== undefined) return need(schema.$ref.replace("#/components/schemas/", ""));
    if ("const" in schema) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return union(schema.enum.map((one) => JSON.stringify(one)));
    if (schema.anyOf !== undefined) return union(schema.anyOf.map(inner));
    if (schema.type === undefined) return "unknown";
    if (schema.type === "array") return `(${inner(schema.items ?? {})})[]`.replace(/^\((\w+)\)/, "$1");
    if (schema.type === "object") return writeObject(schema, indent, need);
    const plain = PLAIN[schema.type];
    if (plain === undefined) throw new Error(`the type ${schema.type} is not understood`);
    return plain;
}

function writeObject({ properties = {}, required = [], additionalProperties }, indent, need) {
    const deeper = `${indent}  `;
    const lines = Object.entries(properties).map(([name, schema]) => {
        const type = writeType(schema, deeper, need);
        const isRequired = required.includes(name);
        // With `undefined`, so that a caller may pass a value that it does not have.
        const value = isRequired || type === "unknown" ? type : union([type, "undefined"]);
        return `${comment(schema.description, deeper)}${deeper}${name}${isRequired ? "" : "?"}: ${value};\n`;
    });
    // Pydantic says `false` for requests and nothing for responses.
    if (additionalProperties === true || (lines.length === 0 && additionalProperties === undefined)) {
        lines.push(`${deeper}[name: string]: unknown;\n`);
    } else if (typeof additionalProperties === "object") {
        lines.push(`${deeper}[name: string]: ${writeType(additionalProperties, deeper, need)};\n`);
    }
    return `{\n${lines.join("")}${indent}}`;
}

function union(types, none = "never") {
    return [...new Set(types)].join(" | ") || none;
}

function comment(text, indent) {
    if (!text) return "";
    const lines = text.replaceAll("*/", "* /").trim().split("\n");
    if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
    return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}
