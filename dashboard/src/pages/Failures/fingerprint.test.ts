import { expect, it } from "vitest";
import { byMessage, fingerprint } from "./fingerprint";

it.each([
  ["timed out after 30.5 s", "timed out after <n> s"],
  ["no file 'a b.pdf' in \"x\"", "no file '…' in \"…\""],
  ["can't read page 7, don't retry", "can't read page <n>, don't retry"],
  ["job 8f3a2b1c-0000-4000-8000-00000000abcd is gone", "job <id> is gone"],
  ["object at 0x7f3ba04d04a0", "object at <id>"],
  ["commit 8475f5ca not found", "commit <id> not found"],
  ["GET https://api.test/v1/users/7?x=1 failed: 503", "GET <url> failed: <n>"],
  ["open /srv/data/7.csv: no such file", "open <path>: no such file"],
  ["bad utf8 in v2 of sha256", "bad utf8 in v2 of sha256"],
  ["HTTP 502/503 from 10.0.0.1:8080", "HTTP <n>/<n> from <n>"],
  ["two\n  lines", "two lines"],
  ["", ""],
])("%j is %j", (message, expected) => {
  expect(fingerprint(message)).toBe(expected);
});

it("is bounded, also in time", () => {
  for (const part of ["a", "'", "/", "0", "0.", "a://", "\\", "0-", " "]) {
    expect(fingerprint(part.repeat(1_000_000)).length).toBeLessThanOrEqual(201);
  }
});

it("groups jobs by message, the largest group first", () => {
  const jobs = ["no file 'a'", "took 3 s", "took 5 s", null].map((message, n) => ({
    id: n,
    error: message === null ? null : { message },
  }));
  const found = byMessage(jobs).map(({ fingerprint, newest, jobs }) => [
    fingerprint,
    newest.id,
    jobs.length,
  ]);
  expect(found).toEqual([
    ["took <n> s", 1, 2],
    ["no file '…'", 0, 1],
    ["", 3, 1],
  ]);
});
