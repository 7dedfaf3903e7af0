import { parseJson, writeJson } from "../../../api/json";

/** One argument of a job type as a form field. Its value is kept as text, so that digits stay. */
export type Field = {
  name: string;
  kind: "text" | "integer" | "number" | "boolean" | "choice" | "json";
  isRequired: boolean;
  isNullable: boolean;
  /** The JSON of each value to choose from. */
  choices: string[];
  hint: string | null;
  /** The JSON of the value that the handler takes if there is none. */
  fallback: string | null;
};

/** What is written in each field; a field without a text is left out of the payload. */
export type Texts = Record<string, string>;

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of a job type's arguments; null if its schema is more than a list of arguments. */
export function fieldsOf(schema: unknown): Field[] | null {
  if (!isObject(schema)) return null;
  const properties = schema.properties ?? {};
  if (schema.type !== "object" || !isObject(properties)) return null;
  const required = Array.isArray(schema.required) ? schema.required : [];
  return (
    Object.entries(properties)
      .map(([name, found]) =>
        fieldOf(name, isObject(found) ? found : {}, required.includes(name), schema.$defs),
      )
      // The database does not keep the order of the arguments.
      .sort((one, other) => Number(other.isRequired) - Number(one.isRequired))
  );
}

function fieldOf(name: string, found: Schema, isRequired: boolean, definitions: unknown): Field {
  const { schema, isNullable } = withoutNull(found, definitions);
  const choices = choicesOf(schema);
  return {
    name,
    kind: choices.length > 0 ? "choice" : kindOf(schema),
    isRequired,
    isNullable,
    choices,
    hint: hintOf(found, schema),
    fallback: "default" in found ? writeJson(found.default) : null,
  };
}

function resolved(schema: Schema, definitions: unknown): Schema {
  const [, name] = /^#\/\$defs\/(.+)$/.exec(String(schema.$ref ?? "")) ?? [];
  const found = name !== undefined && isObject(definitions) ? definitions[name] : undefined;
  return isObject(found) ? found : schema;
}

function withoutNull(found: Schema, definitions: unknown): { schema: Schema; isNullable: boolean } {
  const schema = resolved(found, definitions);
  const options = Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject) : [];
  const others = options.filter((each) => each.type !== "null");
  const [only] = others;
  if (only === undefined || others.length === options.length) return { schema, isNullable: false };
  return { schema: others.length === 1 ? resolved(only, definitions) : {}, isNullable: true };
}

function choicesOf(schema: Schema): string[] {
  const values = "const" in schema ? [schema.const] : schema.enum;
  return Array.isArray(values) ? values.map((value) => writeJson(value)) : [];
}

function kindOf(schema: Schema): Field["kind"] {
  if (schema.type === "string") return "text";
  if (schema.type === "integer" || schema.type === "number" || schema.type === "boolean") {
    return schema.type;
  }
  return "json";
}

function hintOf(found: Schema, schema: Schema): string | null {
  const words = found.description ?? schema.description;
  if (typeof words === "string") return words;
  if (typeof schema.format === "string") return schema.format;
  const [least, most] = [schema.minimum, schema.maximum];
  if (least !== undefined && most !== undefined) return `${least} to ${most}`;
  if (least !== undefined) return `At least ${least}`;
  return most === undefined ? null : `At most ${most}`;
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;
const INTEGER = /^-?(0|[1-9]\d*)$/;

type Read = { value: unknown } | { error: string } | null;

/** The value that a field's text means; null if the argument is left out. */
export function readField(field: Field, text: string | undefined): Read {
  if (text === undefined || text.trim() === "") return missing(field);
  switch (field.kind) {
    case "text":
      return { value: text };
    case "integer":
      return INTEGER.test(text.trim())
        ? { value: parseJson(text) }
        : { error: "must be a whole number" };
    case "number":
      return NUMBER.test(text.trim()) ? { value: parseJson(text) } : { error: "must be a number" };
    default:
      return readJson(text);
  }
}

function missing(field: Field): Read {
  if (!field.isRequired) return null;
  return field.isNullable ? { value: null } : { error: "is required" };
}

function readJson(text: string): Read {
  try {
    return { value: parseJson(text) };
  } catch (error) {
    return { error: `is not JSON: ${error instanceof Error ? error.message : error}` };
  }
}

export type PayloadRead = { payload: Record<string, unknown>; errors: Record<string, string> };

/** The payload of a filled form, and what is wrong with which field. */
export function payloadOf(fields: readonly Field[], texts: Texts): PayloadRead {
  const found: PayloadRead = { payload: {}, errors: {} };
  for (const field of fields) {
    const read = readField(field, texts[field.name]);
    if (read === null) continue;
    if ("error" in read) found.errors[field.name] = read.error;
    else found.payload[field.name] = read.value;
  }
  return found;
}

/** The texts of a form that mean this payload; null if the form cannot show it. */
export function textsOf(fields: readonly Field[], payload: unknown): Texts | null {
  if (!isObject(payload)) return null;
  const texts: Texts = {};
  for (const [name, value] of Object.entries(payload)) {
    const field = fields.find((each) => each.name === name);
    if (field === undefined) return null;
    texts[name] = field.kind === "text" && typeof value === "string" ? value : writeJson(value);
    if (value === null && field.isNullable && field.isRequired) texts[name] = "";
    const read = readField(field, texts[name]);
    const isSame = read && "value" in read && writeJson(read.value) === writeJson(value);
    if (!isSame) return null;
  }
  return texts;
}
