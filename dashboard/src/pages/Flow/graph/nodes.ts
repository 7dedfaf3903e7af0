import type { GraphJob, JobGraph } from "./jobGraph";

/** What the graph shows as one box: a job, or jobs that are alike. */
export type GraphNode = { key: string; layer: number; jobs: number[] };
export type GraphEdge = { from: number; to: number; isSubJob: boolean };
export type Nodes = { nodes: GraphNode[]; edges: GraphEdge[] };

// As many alike jobs stand side by side as single boxes.
const FEW = 6;
// Or as many with names.
const FEW_NAMED = 12;
// More boxes than this are neither read nor drawn at once.
const MOST = 240;
const MOST_BANDS = 60;
const MOST_ROUNDS = 30;

/**
 * The boxes of a flow. Jobs are alike if they have the same type, come after the same boxes, and the
 * same boxes come after them.
 * `opened` are the keys of boxes that are shown job by job. However many jobs there are and however
 * they hang together, there are at most `most` boxes: then neighbouring layers share them.
 */
export function nodesOf(
  jobs: readonly GraphJob[],
  graph: JobGraph,
  opened: ReadonlySet<string> = new Set(),
  most = MOST,
): Nodes {
  const alike = alikeIn(jobs, graph, most);
  const nodes = alike.flatMap((node) =>
    isApart(node, jobs) || opened.has(node.key) ? single(node, jobs) : [node],
  );
  const found =
    nodes.length <= most
      ? nodes
      : alike.length <= most
        ? alike
        : (inBands(jobs, graph, most, true) ?? inBands(jobs, graph, most, false) ?? []);
  return { nodes: found, edges: edgesBetween(found, graph) };
}

function isApart({ jobs: places }: GraphNode, jobs: readonly GraphJob[]): boolean {
  if (places.length <= FEW) return true;
  return places.length <= FEW_NAMED && places.some((place) => hasName(jobs[place]));
}

const hasName = (job: GraphJob | undefined) => job?.name != null && job.name !== job.job_type;

function single({ layer, jobs: places }: GraphNode, jobs: readonly GraphJob[]): GraphNode[] {
  return places.map((place) => ({ key: jobs[place]?.id ?? "", layer, jobs: [place] }));
}

/** Boxes of jobs with the same boxes before and after them; or only before them, if those are too many. */
function alikeIn(jobs: readonly GraphJob[], graph: JobGraph, most: number): GraphNode[] {
  const order = jobs.map((_, place) => place).sort((a, b) => layerOf(graph, a) - layerOf(graph, b));
  // Owners have negative numbers, parents do not.
  const before = jobs.map((_, place) => {
    const owner = graph.owners[place];
    const parents = graph.parents[place] ?? [];
    return owner == null ? parents : [...parents, ~owner];
  });
  const behind: number[][] = jobs.map(() => []);
  for (const [place, near] of before.entries()) {
    for (const one of near) behind[one < 0 ? ~one : one]?.push(one < 0 ? ~place : place);
  }
  const types = numbered(jobs.map(({ job_type }, at) => `${layerOf(graph, at)} ${job_type}`));
  const merged = split(types, before, order);
  const groups = refined(merged, before, behind, order, most) ?? merged;
  const nodes = new Map<number, GraphNode>();
  for (const place of order) {
    const layer = layerOf(graph, place);
    const group = groups[place] as number;
    // The same when jobs are added to the flow, so that an opened box stays open.
    const key = JSON.stringify(["alike", jobs[place]?.id]);
    const node = nodes.get(group) ?? { key, layer, jobs: [] };
    node.jobs.push(place);
    nodes.set(group, node);
  }
  return [...nodes.values()];
}

/** Splits groups until their jobs have the same groups before and behind; null: they are too many. */
function refined(
  merged: number[],
  before: number[][],
  behind: number[][],
  order: number[],
  most: number,
): number[] | null {
  const back = [...order].reverse();
  let [groups, size] = [merged, new Set(merged).size];
  for (let round = 0; round < MOST_ROUNDS && size <= most; round += 1) {
    groups = split(split(groups, behind, back), before, order);
    const found = new Set(groups).size;
    if (found === size) return groups;
    size = found;
  }
  return null;
}

function split(groups: number[], near: number[][], order: number[]): number[] {
  const numbers = new Map<string, number>();
  const found: number[] = groups.map(() => 0);
  for (const place of order) {
    const others = new Set<number>();
    for (const one of near[place] ?? []) {
      others.add(one < 0 ? ~(found[~one] as number) : (found[one] as number));
    }
    const key = `${groups[place]} ${[...others].sort((a, b) => a - b).join(" ")}`;
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    found[place] = number;
  }
  return found;
}

function numbered(keys: readonly string[]): number[] {
  const numbers = new Map<string, number>();
  return keys.map((key) => {
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  });
}

/** Boxes of neighbouring layers, by type if wanted; null if they are still too many. */
function inBands(
  jobs: readonly GraphJob[],
  graph: JobGraph,
  most: number,
  isByType: boolean,
): GraphNode[] | null {
  const layers = graph.layers.reduce((highest, layer) => Math.max(highest, layer), 0) + 1;
  const height = Math.ceil(layers / Math.min(MOST_BANDS, most));
  const nodes = new Map<string, GraphNode>();
  for (const [place, { job_type }] of jobs.entries()) {
    const layer = Math.floor(layerOf(graph, place) / height);
    const key = JSON.stringify(["band", layer, isByType ? job_type : null]);
    const node = nodes.get(key) ?? { key, layer, jobs: [] };
    node.jobs.push(place);
    nodes.set(key, node);
    if (nodes.size > most) return null;
  }
  return [...nodes.values()];
}

function edgesBetween(nodes: readonly GraphNode[], graph: JobGraph): GraphEdge[] {
  const nodeOf: number[] = [];
  for (const [number, { jobs }] of nodes.entries()) for (const job of jobs) nodeOf[job] = number;
  const edges = new Map<number, GraphEdge>();
  const add = (parent: number, to: number, isSubJob: boolean) => {
    const from = nodeOf[parent];
    // Inside of a box of several layers, edges are not drawn.
    if (from === undefined || from === to) return;
    const key = from * nodes.length + to;
    const edge = edges.get(key);
    if (edge === undefined) edges.set(key, { from, to, isSubJob });
    else edge.isSubJob &&= isSubJob;
  };
  for (const [to, { jobs }] of nodes.entries()) {
    for (const job of jobs) {
      for (const parent of graph.parents[job] ?? []) add(parent, to, false);
      const owner = graph.owners[job];
      if (owner != null) add(owner, to, true);
    }
  }
  return [...edges.values()].filter(
    ({ from, to }) => (nodes[from]?.layer ?? 0) < (nodes[to]?.layer ?? 0),
  );
}

const layerOf = (graph: JobGraph, place: number): number => graph.layers[place] ?? 0;
