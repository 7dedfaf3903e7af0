import { describe, expect, it } from "vitest";
import { parseAge } from "./age";
import { complete } from "./complete";
import { isCounted, toCountQuery, toQuery } from "./jobFilter";
import { parseFilter, renderFilter } from "./text";
import { filterWords } from "./words";

it.each([
  ["90s", 90],
  ["15m", 900],
  ["15 min", 900],
  ["1h 30m", 5400],
  ["1h30m", 5400],
  ["2d", 172_800],
  ["0.5h", 1800],
  ["", null],
  ["1", null],
  ["h", null],
  ["1h x", null],
])("reads the age %j", (text, seconds) => expect(parseAge(text)).toBe(seconds));

describe("the text form", () => {
  it("has every condition", () => {
    const text =
      'status:failed lane:interactive job_type:ingestion error_type:OSError tag:nightly worker:api-1 workspace:eu since:1h older_than:5m ended_since:10m disk "is full"';
    const { filter, problems } = parseFilter(text);
    expect(problems).toEqual([]);
    expect(filter).toEqual({
      status: "failed",
      lane: "interactive",
      job_type: "ingestion",
      error_type: "OSError",
      tag: "nightly",
      worker: "api-1",
      workspace: "eu",
      since: "1h",
      older_than: "5m",
      ended_since: "10m",
      q: "disk is full",
    });
  });

  it.each([
    [{ tag: "a b" }, 'tag:"a b"'],
    [{ tag: 'say "hi"', q: "x" }, 'tag:"say \\"hi\\"" x'],
    [{ worker: "c:\\host" }, 'worker:"c:\\\\host"'],
    [{ q: "lane:x is text" }, '"lane:x is text"'],
    [{ q: "lane:x" }, '"lane:x"'],
    [
      { since: "2026-11-17", until: "2026-11-18T08:00Z" },
      "since:2026-11-17 until:2026-11-18T08:00Z",
    ],
    [{}, ""],
  ])("of %j is %s and back", (filter, text) => {
    expect(renderFilter(filter)).toBe(text);
    expect(parseFilter(text)).toEqual({ filter, problems: [] });
  });

  it("takes a quote that never ends as text to its end", () => {
    expect(parseFilter('tag:"a b').filter).toEqual({ tag: "a b" });
    expect(parseFilter('"').filter).toEqual({});
  });

  it.each([
    ["statsu:failed", "Unknown filter statsu. Did you mean status?"],
    ["queue:x", "Unknown filter queue. Did you mean lane?"],
    ["type:x", "Unknown filter type. Did you mean job_type?"],
    ["http://x", 'Unknown filter http. To search for the text, write "http://x" in quotes.'],
    ["status:faild", "Unknown status faild. Did you mean failed?"],
    ["status:zzz", /^Unknown status zzz\. Use one of pending, /],
    ["since:yesterday", /^since:yesterday is neither an age/],
    ["until:1h", /is not a date/],
    ["older_than:long", /is not an age/],
    ["lane:", "lane needs a value."],
    ["lane:a lane:b", /^lane is given twice/],
    ["since:1h older_than:2h", /^No job is younger/],
    ["status:running error_type:X", "Jobs that are running have no error."],
    ["status:approved ended_since:1h", "Jobs that are queued have not ended."],
    ["ended_since:yesterday", /^ended_since:yesterday is neither an age/],
  ])("names what is wrong with %s", (text, problem) => {
    const { problems } = parseFilter(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });

  it.each(["\\", '"\\', ":", "::", 'a"b', 'lane:a"b', "ü:x", "x".repeat(5000)])(
    "survives %j",
    (text) => expect(() => parseFilter(text)).not.toThrow(),
  );
});

describe("parameters of the API", () => {
  it("has ages in seconds and moments in UTC", () => {
    expect(toQuery({ status: "failed", since: "1h", older_than: "5m", q: "x" })).toEqual({
      status: "failed",
      newer_than: 3600,
      older_than: 300,
      q: "x",
    });
    expect(toQuery({ since: "2026-11-17T08:00+01:00" })).toEqual({
      since: "2026-11-17T07:00:00.000Z",
    });
    expect(toQuery({ ended_since: "1h" })).toEqual({ ended_within: 3600 });
    expect(toQuery({ ended_since: "2026-11-17T08:00Z" })).toEqual({
      ended_since: "2026-11-17T08:00:00.000Z",
    });
  });

  it("counts without what counts cannot take", () => {
    expect(toCountQuery({ status: "failed", lane: "a", q: "x", ended_since: "1h" })).toEqual({
      lane: "a",
    });
    expect(isCounted({ status: "failed", lane: "a" })).toBe(true);
    expect(isCounted({ q: "x" })).toBe(false);
  });
});

describe("completion", () => {
  const known = { lane: ["default", "interactive"], tag: ["a b"] };
  const texts = (text: string) => complete(text, known).map((each) => each.text);

  it("offers keys", () => {
    expect(texts("")).toContain("status:");
    expect(texts("ty")).toEqual(["job_type:", "error_type:"]);
    expect(texts("lane:x wor")).toEqual(["lane:x worker:", "lane:x workspace:"]);
  });

  it("offers values", () => {
    expect(texts("lane:")).toEqual(["lane:default", "lane:interactive"]);
    expect(texts("x lane:act")).toEqual(["x lane:interactive"]);
    expect(texts("tag:")).toEqual(['tag:"a b"']);
    expect(texts('tag:"a')).toEqual(['tag:"a b"']);
    expect(texts("status:can")).toEqual(["status:cancelled"]);
    expect(texts("nothing:")).toEqual([]);
  });
});

it.each([
  [{}, "jobs"],
  [
    { status: "failed", lane: "api", since: "1h", q: "disk" },
    "failed jobs in lane api submitted in the last 1h containing “disk”",
  ],
  [{ status: "approved", older_than: "2d" }, "queued jobs older than 2d"],
  [{ status: "failed", ended_since: "1h" }, "failed jobs ended in the last 1h"],
  [{ since: "2026-11-17" }, "jobs submitted since 2026-11-17"],
])("says %j in words", (filter, words) => expect(filterWords(filter)).toBe(words));
