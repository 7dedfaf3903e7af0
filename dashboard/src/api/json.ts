/** A number that a JavaScript number cannot hold exactly, as it was written. */
export class ExactNumber {
  constructor(readonly source: string) {}

  toString(): string {
    return this.source;
  }
}

type ReviverContext = { source?: string };

const HAS_SOURCE_TEXT = (() => {
  let source: string | undefined;
  const look = (_key: string, value: unknown, context?: ReviverContext) => {
    source = context?.source;
    return value;
  };
  JSON.parse("1", look as Parameters<typeof JSON.parse>[1]);
  return source === "1";
})();

/** Parse JSON and keep the digits of large numbers. */
export function parseJson(text: string, hasSourceText = HAS_SOURCE_TEXT): unknown {
  if (!hasSourceText) return parseMarked(text);
  const revive = (_key: string, value: unknown, context?: ReviverContext): unknown =>
    typeof value === "number" && context?.source !== undefined && !isExact(value, context.source)
      ? new ExactNumber(context.source)
      : value;
  return JSON.parse(text, revive as Parameters<typeof JSON.parse>[1]);
}

// A string, or a number as JSON writes it; no part can be matched in two ways.
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/gs;

/** Parse without `context.source`, which older browsers do not have: large numbers become marked strings. */
function parseMarked(text: string): unknown {
  // No value of the server begins with NUL: PostgreSQL stores none.
  const mark = `\0${Math.random()} `;
  const marked = text.replace(TOKEN, (token) =>
    token.startsWith('"') || isExact(Number(token), token) ? token : JSON.stringify(mark + token),
  );
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_key, value) =>
    typeof value === "string" && value.startsWith(mark)
      ? new ExactNumber(value.slice(mark.length))
      : value,
  );
}

/** Write JSON with the digits that `parseJson` kept. */
export function writeJson(value: unknown, indent = 0): string {
  return write(value, " ".repeat(indent), "\n");
}

// A double holds any number of 15 significant digits.
function isExact(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return false;
  const mantissa = source.replace(/e.*$/i, "").replace(/^-?[0.]*|\./g, "");
  return mantissa.length <= 15 || String(value) === source;
}

function write(value: unknown, indent: string, line: string): string {
  if (value instanceof ExactNumber) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const inner = line + indent;
  const parts = isList
    ? value.map((each) => write(each, indent, inner))
    : Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(
          ([key, each]) => `${JSON.stringify(key)}:${indent && " "}${write(each, indent, inner)}`,
        );
  const [open, close] = isList ? "[]" : "{}";
  if (parts.length === 0) return `${open}${close}`;
  return indent
    ? open + inner + parts.join(`,${inner}`) + line + close
    : open + parts.join(",") + close;
}
