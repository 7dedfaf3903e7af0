/** What the graph of a flow needs to know of each job. */
export type GraphJob = {
  id: string;
  job_type: string;
  name?: string | null;
  /** The jobs that it comes after. */
  after: readonly string[];
  /** The job that runs it as its sub-job. */
  owner: string | null;
};

/** The edges of a flow by the places of its jobs; jobs of other flows are left out. */
export type JobGraph = {
  /** The jobs that each comes after. */
  parents: number[][];
  owners: (number | null)[];
  /** The distance of each job from the first ones, along the longest way. */
  layers: number[];
};

export function graphOf(jobs: readonly GraphJob[]): JobGraph {
  const places = new Map(jobs.map(({ id }, place) => [id, place]));
  const placesOf = (ids: readonly string[]) =>
    ids.flatMap((id) => {
      const place = places.get(id);
      return place === undefined ? [] : [place];
    });
  const parents = jobs.map(({ after }) => placesOf(after));
  const owners = jobs.map(({ owner }) => (owner === null ? null : (places.get(owner) ?? null)));
  return { parents, owners, layers: layersOf(parents, owners) };
}

/** A sub-job stands behind its owner. Jobs in a circle, which the server refuses, stand in layer 0. */
function layersOf(parents: number[][], owners: (number | null)[]): number[] {
  const before = parents.map((places, job) => {
    const owner = owners[job];
    return owner == null ? places : [...places, owner];
  });
  const children: number[][] = parents.map(() => []);
  for (const [job, places] of before.entries()) for (const one of places) children[one]?.push(job);
  const missing = before.map((places) => places.length);
  const layers = parents.map(() => 0);
  const free = missing.flatMap((count, job) => (count === 0 ? [job] : []));
  for (let at = 0; at < free.length; at += 1) {
    const job = free[at] as number;
    for (const child of children[job] ?? []) {
      layers[child] = Math.max(layers[child] ?? 0, (layers[job] ?? 0) + 1);
      missing[child] = (missing[child] ?? 0) - 1;
      if (missing[child] === 0) free.push(child);
    }
  }
  return layers;
}
