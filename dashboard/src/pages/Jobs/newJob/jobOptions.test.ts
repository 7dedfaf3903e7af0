import { expect, it } from "vitest";
import { NO_OPTIONS, readOptions } from "./jobOptions";

it("leaves out what is not set", () => {
  expect(readOptions(NO_OPTIONS)).toEqual({
    request: { tags: [], workspace: "default" },
    errors: {},
  });
});

it("reads every option", () => {
  const { request, errors } = readOptions({
    priority: "-5",
    start: "delay",
    delay: "1h 30m",
    runAt: "",
    tags: "nightly, eu  big",
    uniqueKey: " k ",
    workspace: "team",
    maxRetries: "0",
  });
  expect(errors).toEqual({});
  expect(request).toEqual({
    priority: -5,
    delay: 5400,
    tags: ["nightly", "eu", "big"],
    unique_key: "k",
    workspace: "team",
    max_retries: 0,
  });
});

it("names what is wrong", () => {
  const { errors } = readOptions({ ...NO_OPTIONS, priority: "1.5", start: "delay", delay: "soon" });
  expect(Object.keys(errors)).toEqual(["priority", "delay"]);
});
