import { expect, it } from "vitest";
import { type GraphJob, graphOf } from "./jobGraph";
import { layout, pathOf } from "./layout";
import { nodesOf } from "./nodes";

const SIZES = { width: 100, height: 40, gapX: 50, gapY: 10 };

const job = (id: string, after: string[] = [], job_type = "page", owner: string | null = null) =>
  ({ id, job_type, after, owner }) satisfies GraphJob;
const many = (count: number, make: (n: number) => GraphJob) =>
  Array.from({ length: count }, (_, n) => make(n));
const names = (count: number, start = "p") =>
  many(count, (n) => job(`${start}${n}`)).map(({ id }) => id);

function drawn(jobs: GraphJob[], opened: string[] = [], most?: number) {
  const { nodes, edges } = nodesOf(jobs, graphOf(jobs), new Set(opened), most);
  return { nodes, edges, sizes: nodes.map(({ jobs: inside }) => inside.length) };
}

it("puts a job behind the last of those it comes after", () => {
  const jobs = [job("c", ["a", "b"]), job("a"), job("b", ["a"]), job("d", ["elsewhere"])];
  const { layers, parents } = graphOf(jobs);
  expect(layers).toEqual([2, 0, 1, 0]);
  expect(parents[3]).toEqual([]);
});

it("puts a sub-job behind its owner", () => {
  const { nodes, edges } = drawn([job("a"), job("s", [], "part", "a")]);
  expect(nodes.map(({ layer }) => layer)).toEqual([0, 1]);
  expect(edges).toEqual([{ from: 0, to: 1, isSubJob: true }]);
});

it("survives a circle", () => {
  expect(graphOf([job("a", ["b"]), job("b", ["a"]), job("c")]).layers).toEqual([0, 0, 0]);
});

it("shows a few alike jobs one by one, and many as one box", () => {
  const flow = (width: number) => [
    job("list", [], "list"),
    ...many(width, (n) => job(`p${n}`, ["list"])),
    job("join", names(width), "join"),
  ];
  expect(drawn(flow(3)).sizes).toEqual([1, 1, 1, 1, 1]);
  const { sizes, edges, nodes } = drawn(flow(200));
  expect(sizes).toEqual([1, 200, 1]);
  expect(edges).toHaveLength(2);
  expect(drawn(flow(200), [nodes[1]?.key ?? ""]).sizes).toHaveLength(202);
});

it("keeps jobs apart that come after different boxes", () => {
  const jobs = [
    job("a", [], "load"),
    job("b", [], "clean"),
    ...many(10, (n) => job(`p${n}`, [n < 5 ? "a" : "b"])),
  ];
  expect(drawn(jobs).nodes).toHaveLength(12);
  const wide = [jobs[0], jobs[1], ...many(40, (n) => job(`p${n}`, [n < 20 ? "a" : "b"]))];
  expect(drawn(wide as GraphJob[]).sizes).toEqual([1, 1, 20, 20]);
});

it("keeps jobs apart that other boxes come after", () => {
  const jobs = [...many(10, (n) => job(`p${n}`)), job("u", ["p3"], "undo")];
  const { nodes, edges, sizes } = drawn(jobs);
  expect(sizes.toSorted()).toEqual([1, 1, 9]);
  expect(edges).toHaveLength(1);
  expect(nodes[edges[0]?.from ?? 0]?.jobs).toEqual([3]);
  // The split of the last boxes splits those before them.
  const chains = [
    ...many(20, (n) => job(`a${n}`, [], "a")),
    ...many(20, (n) => job(`b${n}`, [`a${n}`], "b")),
    job("u", ["b5"], "undo"),
  ];
  expect(drawn(chains).sizes.toSorted((a, b) => a - b)).toEqual([1, 1, 1, 19, 19]);
});

it("keeps jobs with names apart, unless they are many", () => {
  const named = (count: number) =>
    many(count, (n) => ({ ...job(`p${n}`, [], "book"), name: `trip ${n}` }));
  expect(drawn(named(12)).nodes).toHaveLength(12);
  expect(drawn(named(200)).nodes).toHaveLength(1);
});

it("merges boxes that differ by what comes after them when there are too many", () => {
  const jobs = [
    ...many(1000, (n) => job(`a${n}`, [], "a")),
    ...many(1000, (n) => job(`b${n}`, n === 0 ? ["a0"] : [`a${n - 1}`, `a${n}`], "b")),
    job("u", ["b0"], "undo"),
  ];
  expect(drawn(jobs).sizes.reduce((sum, size) => sum + size, 0)).toBe(2001);
  expect(drawn(jobs).nodes.length).toBeLessThanOrEqual(240);
});

it.each([
  ["fan-out", (n: number) => (n === 0 ? [] : ["0"])],
  ["chain", (n: number) => (n === 0 ? [] : [String(n - 1)])],
  [
    "layers",
    (n: number) =>
      n < 500
        ? []
        : [500, 501, 777].map((by) => String(n - 500 - ((n % by) % Math.min(n - 499, 500)))),
  ],
])("draws a bounded number of boxes for 10,000 jobs in a %s", (_, after) => {
  const jobs = many(10_000, (n) =>
    job(
      String(n),
      after(n).filter((id) => Number(id) >= 0),
    ),
  );
  const began = performance.now();
  const { nodes, edges, sizes } = drawn(jobs);
  const placed = layout(
    nodes.map(({ layer }) => layer),
    edges,
    SIZES,
  );
  expect(nodes.length).toBeLessThanOrEqual(240);
  expect(placed.places).toHaveLength(nodes.length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(10_000);
  // Far more than it takes: a layout that grows faster than the jobs takes minutes.
  expect(performance.now() - began).toBeLessThan(10_000);
});

it("merges types too when there are too many boxes", () => {
  const jobs = many(1000, (n) => job(String(n), n === 0 ? [] : [String(n - 1)], `type ${n}`));
  expect(drawn(jobs, [], 30).nodes.length).toBeLessThanOrEqual(30);
});

it("lets no boxes overlap and no edge go back", () => {
  const jobs = [
    job("a", [], "a"),
    job("b", ["a"], "b"),
    job("c", ["a"], "c"),
    job("d", ["b"], "d"),
    job("e", ["a", "c", "d"], "e"),
  ];
  const { nodes, edges } = drawn(jobs);
  const { places, lines, height, width } = layout(
    nodes.map(({ layer }) => layer),
    edges,
    SIZES,
  );
  for (const [at, one] of places.entries()) {
    for (const other of places.slice(at + 1)) {
      if (one.x === other.x) expect(Math.abs(one.y - other.y)).toBeGreaterThanOrEqual(40);
    }
    expect(one.y).toBeGreaterThanOrEqual(0);
    expect(one.y + 40).toBeLessThanOrEqual(height + 0.001);
    expect(one.x + 100).toBeLessThanOrEqual(width);
  }
  // An edge that passes a layer goes around its boxes.
  const far = lines[edges.findIndex(({ from, to }) => from === 0 && to === 4)] ?? [];
  const [a, b] = [far[1], far[2]];
  const passed = places.filter(({ x }) => x === a?.x && x + 100 === b?.x);
  expect(passed).toHaveLength(2);
  for (const { y } of passed) expect((a?.y ?? 0) < y || (a?.y ?? 0) > y + 40).toBe(true);
  for (const points of lines) {
    expect(points.map(({ x }) => x)).toEqual(points.map(({ x }) => x).sort((a, b) => a - b));
  }
});

it("draws straight chains straight", () => {
  const jobs = [job("a", [], "a"), job("b", ["a"], "b"), job("c", ["b"], "c")];
  const { nodes, edges } = drawn(jobs);
  const { places, lines } = layout(
    nodes.map(({ layer }) => layer),
    edges,
    SIZES,
  );
  expect(new Set(places.map(({ y }) => y)).size).toBe(1);
  expect(pathOf(lines[0] ?? [])).toBe("M100 20L150 20");
});
