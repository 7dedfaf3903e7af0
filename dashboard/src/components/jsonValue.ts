/** Plain JSON as the API client parses it, with numbers that keep their digits. */

export interface ExactNumber {
  readonly source: string;
}

export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** A number kept as text is an instance of a class; a plain object with a `source` key is not. */
export function isExactNumber(value: unknown): value is ExactNumber {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return false;
  return typeof (value as { source?: unknown }).source === "string";
}

export function jsonKind(value: unknown): JsonKind {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "string") return "string";
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "number" || typeof value === "bigint" || isExactNumber(value)) {
    return "number";
  }
  return "object";
}

/** The text of a number with its exact digits. */
export function numberText(value: unknown): string {
  return isExactNumber(value) ? value.source : String(value);
}

export function childCount(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return jsonKind(value) === "object" ? Object.keys(value as object).length : 0;
}

/** Indented JSON text with exact digits. A loop, so that no depth overflows the stack. */
export function jsonText(value: unknown, indent = 2): string {
  const parts: string[] = [];
  const stack: Step[] = [{ value, depth: 0 }];
  while (stack.length > 0) {
    const step = stack.pop() as Step;
    if (step.text !== undefined) {
      parts.push(step.text);
      continue;
    }
    const kind = jsonKind(step.value);
    if (kind !== "object" && kind !== "array") {
      parts.push(scalarText(step.value));
      continue;
    }
    const isArray = kind === "array";
    const entries: [string | null, unknown][] = isArray
      ? (step.value as unknown[]).map((item) => [null, item])
      : Object.entries(step.value as object);
    if (entries.length === 0) {
      parts.push(isArray ? "[]" : "{}");
      continue;
    }
    const inner = `\n${" ".repeat(indent * (step.depth + 1))}`;
    const outer = `\n${" ".repeat(indent * step.depth)}`;
    parts.push(isArray ? "[" : "{");
    stack.push({ text: `${outer}${isArray ? "]" : "}"}`, depth: 0 });
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const [key, child] = entries[at] as [string | null, unknown];
      const name = key === null ? "" : `${inOrder(JSON.stringify(key))}: `;
      stack.push({ value: child, depth: step.depth + 1 });
      stack.push({ text: `${at === 0 ? "" : ","}${inner}${name}`, depth: 0 });
    }
  }
  return parts.join("");
}

interface Step {
  value?: unknown;
  text?: string;
  depth: number;
}

const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** JSON text with escapes for the characters that reorder what is shown around them. */
export function inOrder(text: string): string {
  return text.replace(
    REORDERING,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export function scalarText(value: unknown): string {
  switch (jsonKind(value)) {
    case "number":
      return numberText(value);
    case "null":
      return "null";
    default:
      return inOrder(JSON.stringify(value));
  }
}
