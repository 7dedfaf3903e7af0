import { expect, it } from "vitest";
import { EventParser } from "./events";

const read = (...parts: string[]) => {
  const parser = new EventParser();
  return parts.flatMap((part) => parser.push(part, JSON.parse));
};

it("reads events that arrive in any parts", () => {
  const text = 'id: 7\nevent: job.claimed\ndata: {"a":1}\n\n: still here\n\nid: 8\ndata: 2\n\n';
  const whole = [
    { id: "7", name: "job.claimed", data: { a: 1 } },
    { id: "8", name: "message", data: 2 },
  ];
  expect(read(text)).toEqual(whole);
  expect(read(...text)).toEqual(whole);
});

it("joins data lines and accepts carriage returns", () => {
  expect(read("data: [1,\r\ndata: 2]\r\n\r\n")).toEqual([
    { id: "", name: "message", data: [1, 2] },
  ]);
});

it("keeps an unfinished event for the next part", () => {
  expect(read("event: x\ndata: 1\n")).toEqual([]);
});
