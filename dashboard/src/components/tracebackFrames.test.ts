import { describe, expect, test } from "vitest";
import { foldFrames, isOwnFile, parseTraceback } from "./tracebackFrames";

const text = `Traceback (most recent call last):
  File "/usr/lib/python3.11/asyncio/tasks.py", line 267, in __step
    result = coro.send(None)
  File "/app/.venv/lib/python3.11/site-packages/laneway/engine/run.py", line 88, in call
    return await handler(context)
           ^^^^^^^^^^^^^^^^^^^^^^
  File "/app/tasks.py", line 41, in ingest
    raise ValueError("no page")
ValueError: no page
`;

describe("isOwnFile", () => {
  test.each([
    "/app/tasks.py",
    "/srv/shop/laneway/app.py",
    "C:\\work\\tasks.py",
    "/opt/x/site-packages/laneway/demo/handlers.py",
    "<stdin>",
  ])("%s is the user's", (file) => {
    expect(isOwnFile(file)).toBe(true);
  });

  test.each([
    "/usr/lib/python3.11/asyncio/tasks.py",
    "/usr/lib/python3/dist-packages/six.py",
    "/x/.venv/lib/python3.14/site-packages/httpx/_models.py",
    "C:\\Python312\\Lib\\json\\decoder.py",
    "/repo/src/laneway/engine/run.py",
    "<frozen importlib._bootstrap>",
  ])("%s is not", (file) => {
    expect(isOwnFile(file)).toBe(false);
  });
});

test("frames, code and the error are distinguished", () => {
  const parts = parseTraceback(text);
  expect(parts.map((part) => part.kind)).toEqual(["text", "frame", "frame", "frame", "error"]);
  expect(parts[2]).toMatchObject({
    line: 88,
    name: "call",
    code: ["return await handler(context)", "       ^^^^^^^^^^^^^^^^^^^^^^"],
  });
});

test("foreign neighbours fold into one", () => {
  const folded = foldFrames(parseTraceback(text));
  expect(folded.map((part) => part.kind)).toEqual(["text", "folded", "frame", "error"]);
  expect(folded[1]).toMatchObject({ frames: [{ name: "__step" }, { name: "call" }] });
});

test("without own frames the last one stays", () => {
  const foreign = text.replace("/app/tasks.py", "/usr/lib/python3.11/json/decoder.py");
  const folded = foldFrames(parseTraceback(foreign));
  expect(folded.map((part) => part.kind)).toEqual(["text", "folded", "frame", "error"]);
});

test("chained errors keep their sentence", () => {
  const parts = parseTraceback(
    `${text}\nDuring handling of the above exception, another exception occurred:\n\n${text}`,
  );
  expect(parts.filter((part) => part.kind === "error")).toHaveLength(2);
  expect(parts.some((part) => part.kind === "text" && part.text.startsWith("During"))).toBe(true);
});

test("a message of several lines and other languages stay as text", () => {
  const parts = parseTraceback(
    "Error: boom\n    at run (/srv/app.js:3:1)\n    at node:internal/x:1",
  );
  expect(parts.map((part) => part.kind)).toEqual(["error", "text", "text"]);
  expect(parseTraceback("")).toEqual([]);
});

test("hostile text parses quickly", () => {
  const started = performance.now();
  parseTraceback('  File "'.repeat(20_000));
  parseTraceback(`${"| + ".repeat(20_000)}\n`.repeat(3));
  parseTraceback(`${"a.".repeat(50_000)}\n`);
  expect(performance.now() - started).toBeLessThan(1000);
});
