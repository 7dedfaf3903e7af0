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
  ["2026-11-18T04:00:00Z late", "<time> late"],
  ["2026-11-18T17:31:09.123456+01:00 late", "<time> late"],
  ["2026-11-18 04:00:00+00, 3 late", "<time>, <n> late"],
  ["20261118T040000Z late", "<time> late"],
  [
    "no backup_2026-11-18, 2026-11-18T04 nor 2026-11-18T04:30",
    "no backup_<time>, <time> nor <time>",
  ],
  ["on 2026-11-18 12 files", "on <time> <n> files"],
  ["at 04:00:00Z", "at <n>Z"],
  ["two\n  lines", "two lines"],
  ["", ""],
])("%j is %j", (message, expected) => {
  expect(fingerprint(message)).toBe(expected);
});

it("reads past any number of blanks", () => {
  expect(fingerprint(`${" ".repeat(500)}late`)).toBe("late");
  expect(fingerprint(`too${"\n".repeat(500)}late `)).toBe("too late");
});

it("is bounded, also in time", () => {
  const dates = ["2026-11-18", "2026-11-18T04:", "20261118T", " 0"];
  for (const part of ["a", "'", "/", "0", "0.", "a://", "\\", "0-", " ", "\n ", ...dates]) {
    expect(fingerprint(part.repeat(200_000)).length).toBeLessThanOrEqual(201);
  }
});

it("groups jobs by message, the largest group first", () => {
  const jobs = ["no file 'a'", "took 3 s", "took 5 s", null].map((message, n) => ({
    id: n,
    error: message === null ? null : { message },
  }));
  const found = byMessage(jobs).map(({ fingerprint, text, newest, jobs }) => [
    fingerprint,
    text,
    newest.id,
    jobs.length,
  ]);
  expect(found).toEqual([
    ["took <n> s", "took <n> s", 1, 2],
    ["no file '…'", "no file 'a'", 0, 1],
    ["", "", 3, 1],
  ]);
});

it("keeps a message that all jobs share", () => {
  const job = { error: { message: "'total'" } };
  expect(byMessage([job, job]).map(({ text }) => text)).toEqual(["'total'"]);
});
