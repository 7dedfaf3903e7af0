import { ExactNumber } from "../../api/json";

const ESCAPES: Record<string, string> = {
  "\\": "\\\\",
  '"': '\\"',
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};
// Control characters, and those that reorder or hide text where code is shown.
const ODD = /[\\"\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SHORT = 60;

/** A JSON value as a Python expression; lines after the first one begin with `indent`. */
export function pythonValue(value: unknown, indent = ""): string {
  if (value === null || value === undefined) return "None";
  if (value instanceof ExactNumber) return value.source;
  if (typeof value === "string") return pythonText(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  const inner = `${indent}    `;
  const parts = Array.isArray(value)
    ? value.map((each) => pythonValue(each, inner))
    : Object.entries(value as object).map(
        ([key, each]) => `${pythonText(key)}: ${pythonValue(each, inner)}`,
      );
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length <= SHORT && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

function pythonText(text: string): string {
  const inside = text.replace(ODD, (char) => {
    const code = char.codePointAt(0) ?? 0;
    if (ESCAPES[char]) return ESCAPES[char];
    if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return `"${inside}"`;
}
