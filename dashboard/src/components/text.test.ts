import { expect, test } from "vitest";
import { linkify } from "./linkify";
import { sparkShape } from "./spark";
import { statusLook, statusWords } from "./status";

test("addresses become links without the end of the sentence", () => {
  expect(linkify("see https://a.example/x?y=1, or (https://b.example/z_(1)).")).toEqual([
    { text: "see " },
    { text: "https://a.example/x?y=1", href: "https://a.example/x?y=1" },
    { text: ", or (" },
    { text: "https://b.example/z_(1)", href: "https://b.example/z_(1)" },
    { text: ")." },
  ]);
});

test("only http addresses become links", () => {
  for (const text of ["javascript:alert(1)", "data:text/html,x", "ftp://x", "http://", ""]) {
    expect(linkify(text).some((part) => part.href)).toBe(false);
  }
});

test("a sparkline breaks at gaps", () => {
  expect(sparkShape([1, null, 2], 10, 10).line.match(/M/g)).toHaveLength(2);
  expect(sparkShape([], 10, 10)).toEqual({ line: "", area: "" });
  expect(sparkShape([0, 0], 10, 10).line).toBe("M0 9L10 9");
});

test("every status has a look, also a new one", () => {
  expect(statusLook("approved").tone).toBe("queued");
  expect(statusLook("__proto__").tone).toBe("queued");
  expect(statusWords("awaiting_approval")).toBe("Awaiting approval");
});
