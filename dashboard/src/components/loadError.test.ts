import { expect, it } from "vitest";
import { isLoadError } from "./loadError";

it.each([
  ["Unable to preload CSS for /ui/assets/history.css", true],
  ["Failed to fetch dynamically imported module: /ui/assets/Limits.js", true],
  ["error loading dynamically imported module: /ui/assets/Limits.js", true],
  ["Importing a module script failed.", true],
  ["Failed to fetch", false],
  ["x is undefined", false],
])("%s: %s", (message, expected) => expect(isLoadError(new Error(message))).toBe(expected));
