import { expect, it } from "vitest";
import { byType } from "./queue";

const load = (job_type: string, depth: number) => ({
  job_type,
  depth,
  depth_is_capped: false,
  oldest_wait_s: 1,
});

it("orders types by depth and priorities from the highest", () => {
  const found = byType({
    waiting: [load("small", 1), load("idle", 0), load("large", 5)],
    by_priority: [
      { ...load("large", 2), priority: 0 },
      { ...load("large", 3), priority: 10 },
    ],
  });
  expect(found.map(({ jobType }) => jobType)).toEqual(["large", "small"]);
  expect(found[0]?.rows.map(({ priority }) => priority)).toEqual([10, 0]);
  expect(found[1]?.rows).toEqual([{ ...load("small", 1), priority: null }]);
});
