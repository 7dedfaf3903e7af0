import { expect, it } from "vitest";
import { notableLanes } from "./notableLanes";

const lane = (name: string, given = {}) => ({
  name,
  slots_used: 0,
  depth: 0,
  enabled: true,
  ...given,
});
const quiet = Array.from({ length: 300 }, (_, at) => lane(`quiet-${at}`));

it("shows all of a few lanes", () => {
  expect(notableLanes(quiet.slice(0, 20), () => false)).toEqual(quiet.slice(0, 20));
});

it("shows the lanes where something happens, in their order", () => {
  const [waiting, busy, drained, done] = [
    lane("waiting", { depth: 3 }),
    lane("busy", { slots_used: 1 }),
    lane("drained", { enabled: false }),
    lane("done"),
  ];
  const shown = notableLanes([...quiet, done, drained, busy, waiting], (name) => name === "done");
  expect(shown).toHaveLength(20);
  expect(shown.slice(-4)).toEqual([done, drained, busy, waiting]);
});
