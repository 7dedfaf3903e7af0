import { describe, expect, it } from "vitest";
import { duration, stopwatch } from "./duration";
import { shortId } from "./id";
import { bytes, count, percent, plural } from "./number";
import { absolute, between, relative } from "./time";

describe("duration", () => {
  it.each([
    [null, "—"],
    [0, "0 ms"],
    [0.0042, "4.2 ms"],
    [0.84, "840 ms"],
    [1, "1 s"],
    [2.14, "2.1 s"],
    [41.4, "41 s"],
    [59.6, "1 min"],
    [432, "7 min 12 s"],
    [725, "12 min"],
    [11_520, "3 h 12 min"],
    [90_000, "1 d 1 h"],
    [864_000, "10 d"],
  ])("shows %s as %s", (seconds, text) => expect(duration(seconds)).toBe(text));
});

it.each([
  [-3, "0:00"],
  [42.9, "0:42"],
  [727, "12:07"],
  [3723, "1:02:03"],
])("runs a stopwatch to %s", (seconds, text) => expect(stopwatch(seconds)).toBe(text));

describe("times", () => {
  const now = Date.parse("2026-11-17T12:00:00Z");
  it.each([
    ["2026-11-17T11:59:59Z", "now"],
    ["2026-11-17T11:59:52Z", "8 s ago"],
    ["2026-11-17T11:54:29Z", "5 min ago"],
    ["2026-11-17T08:10:00Z", "3 h ago"],
    ["2026-11-17T12:03:00Z", "in 3 min"],
    ["2026-11-17T13:20:00Z", "in 1 h 20 min"],
    ["not a time", "not a time"],
  ])("shows %s as %s", (at, text) => expect(relative(at, now)).toBe(text));

  it("names the zone", () => {
    expect(absolute("2026-11-17T14:03:22.5Z", "utc")).toBe("2026-11-17 14:03:22 UTC");
  });

  it("has no negative lengths", () => {
    expect(between("2026-11-17T12:00:01Z", "2026-11-17T12:00:00Z")).toBe(0);
    expect(between(null, "2026-11-17T12:00:00Z")).toBeNull();
  });
});

it("counts", () => {
  expect(count(1234)).toBe("1,234");
  expect(count(10_000, true)).toBe("≥ 10,000");
  expect(plural(1, "job")).toBe("1 job");
  expect(plural(2, "entry", "entries")).toBe("2 entries");
});

it.each([
  [999, "999 bytes"],
  [1500, "1.5 kB"],
  [213_400_000, "213 MB"],
])("shows %s bytes as %s", (value, text) => expect(bytes(value)).toBe(text));

it.each([
  [0, 10, "0 %"],
  [1, 250, "0.4 %"],
  [3, 4, "75 %"],
  [1, 0, "—"],
])("shows %s of %s as %s", (part, whole, text) => expect(percent(part, whole)).toBe(text));

it("names jobs of the same moment differently", () => {
  expect(shortId("01a1ec14-9e0d-718c-8a64-5fc4a9cf1877")).toBe("01a1ec14-9e0d…cf1877");
});
