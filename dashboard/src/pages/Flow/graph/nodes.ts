import type { GraphJob, JobGraph } from "./jobGraph";

/** What the graph shows as one box: a job, or jobs that are alike. */
export type GraphNode = { key: string; layer: number; jobs: number[] };
export type GraphEdge = { from: number; to: number; isSubJob: boolean };
export type Nodes = { nodes: GraphNode[]; edges: GraphEdge[] };

// As many alike jobs stand side by side as single boxes.
const FEW = 6;
// More boxes than this are neither read nor drawn at once.
const MOST = 240;
const MOST_BANDS = 60;

/**
 * The boxes of a flow. Jobs are alike if they have the same type, and come after the same boxes.
 * `opened` are the keys of boxes that are shown job by job. However many jobs there are and however
 * they hang together, there are at most `most` boxes: then neighbouring layers share them.
 */
export function nodesOf(
  jobs: readonly GraphJob[],
  graph: JobGraph,
  opened: ReadonlySet<string> = new Set(),
  most = MOST,
): Nodes {
  const alike = alikeIn(jobs, graph);
  const nodes = alike.flatMap((node) =>
    node.jobs.length <= FEW || opened.has(node.key) ? single(node, jobs) : [node],
  );
  const found =
    nodes.length <= most
      ? nodes
      : alike.length <= most
        ? alike
        : (inBands(jobs, graph, most, true) ?? inBands(jobs, graph, most, false) ?? []);
  return { nodes: found, edges: edgesBetween(found, graph) };
}

function single({ layer, jobs: places }: GraphNode, jobs: readonly GraphJob[]): GraphNode[] {
  return places.map((place) => ({ key: jobs[place]?.id ?? "", layer, jobs: [place] }));
}

function alikeIn(jobs: readonly GraphJob[], graph: JobGraph): GraphNode[] {
  const groupOf: number[] = [];
  const nodes = new Map<string, GraphNode & { number: number }>();
  const byLayer = jobs
    .map((_, place) => place)
    .sort((a, b) => layerOf(graph, a) - layerOf(graph, b));
  for (const place of byLayer) {
    const layer = layerOf(graph, place);
    const before = new Set(graph.parents[place]?.map((parent) => groupOf[parent]));
    const owner = graph.owners[place];
    const sorted = [...before].sort((a, b) => (a ?? 0) - (b ?? 0));
    const type = jobs[place]?.job_type;
    const key = JSON.stringify([layer, type, sorted, owner == null ? null : groupOf[owner]]);
    const node = nodes.get(key) ?? { key, layer, jobs: [], number: nodes.size };
    node.jobs.push(place);
    nodes.set(key, node);
    groupOf[place] = node.number;
  }
  return [...nodes.values()];
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
