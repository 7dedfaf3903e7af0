/** Encodes JSON; refuses values that JSON.stringify would silently drop or change. */

import { InvalidInput } from "./invalid_input.js";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const MAX_DEPTH = 64;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The value as JSON text; `undefined` is null. */
export function encode(value: unknown, field: string): string {
  if (value === undefined || value === null) return "null";
  checkJson(value, field);
  return JSON.stringify(value);
}

/** Throws InvalidInput if JSON text would not have the whole value. */
export function checkJson(value: unknown, field: string): void {
  check(value, field, "", 0);
}

/** The value of JSON text that a server sent. */
export function decode(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput(field, `is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function check(given: unknown, field: string, key: string, depth: number): void {
  const value = hasToJSON(given) ? given.toJSON(key) : given;
  switch (typeof value) {
    case "string":
      return checkText(value, field);
    case "number":
      if (!Number.isFinite(value)) throw new InvalidInput(field, `is ${value}, which JSON does not have`);
      return;
    case "bigint":
      throw new InvalidInput(field, "is a bigint: return a string, or a number if it is safe");
    case "function":
    case "symbol":
      throw new InvalidInput(field, `is a ${typeof value}, which JSON does not have`);
    case "object":
      if (value !== null) checkWithin(value, field, depth + 1);
  }
}

function checkWithin(value: object, field: string, depth: number): void {
  if (depth > MAX_DEPTH) {
    throw new InvalidInput(field, `is nested more than ${MAX_DEPTH} levels deep, or contains itself`);
  }
  if (Array.isArray(value)) {
    value.forEach((item, i) => check(item, `${field}[${i}]`, String(i), depth));
    return;
  }
  if (value instanceof Map || value instanceof Set || value instanceof Promise) {
    throw new InvalidInput(field, `is a ${value.constructor.name}, which JSON does not have`);
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    throw new InvalidInput(field, "is binary: return text, or base64");
  }
  for (const [key, item] of Object.entries(value)) {
    checkText(key, field);
    check(item, `${field}.${key}`, key, depth);
  }
}

function checkText(text: string, field: string): void {
  if (text.includes("\0")) throw new InvalidInput(field, "contains a NUL character");
  if (LONE_SURROGATE.test(text)) throw new InvalidInput(field, "contains half of a surrogate pair");
}

function hasToJSON(value: unknown): value is { toJSON(key: string): unknown } {
  return (
    typeof value === "object" &&
    value !== null &&
    "toJSON" in value &&
    typeof value.toJSON === "function"
  );
}

/** Text that PostgreSQL accepts, cut to `longest` characters. */
export function safeText(text: string, longest: number): string {
  const safe = text.replace(/\0/g, "\\u0000").replace(/\p{Surrogate}/gu, "\ufffd");
  if (safe.length <= longest) return safe;
  // Do not cut a surrogate pair.
  return `${safe.slice(0, longest).replace(/\p{Surrogate}$/u, "")} …`;
}
