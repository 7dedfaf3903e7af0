import type { components } from "../../api";

type FlowJob = components["schemas"]["FlowJobOut"];
type Job = Pick<components["schemas"]["JobDetailOut"], "id" | "waits_for">;

/** A job with an edge to another one; without a name and a status if they are not known. */
export type Neighbour = { id: string; name: string | null; status: string | null };

export type Neighbours = {
  owner: Neighbour[];
  before: Neighbour[];
  subJobs: Neighbour[];
  followers: Neighbour[];
  afterFailure: string | null;
};

/** The jobs around one, from the jobs of its flow; without a flow, those that it waits for. */
export function neighboursOf(job: Job, flow: readonly FlowJob[]): Neighbours {
  const known = new Map(flow.map((each) => [each.id, each]));
  const own = known.get(job.id);
  const waitsFor = job.waits_for?.jobs ?? [];
  const isForSubJobs = job.waits_for?.kind === "sub_jobs";
  const neighbour = (id: string): Neighbour => {
    const found = known.get(id);
    return { id, name: found?.name ?? found?.job_type ?? null, status: found?.status ?? null };
  };
  const those = (isWanted: (each: FlowJob) => boolean) =>
    flow.filter(isWanted).map(({ id }) => neighbour(id));
  const subJobs = those(({ owner }) => owner === job.id);
  return {
    owner: own?.owner ? [neighbour(own.owner)] : [],
    before: (own?.after ?? (isForSubJobs ? [] : waitsFor)).map(neighbour),
    subJobs: subJobs.length > 0 || !isForSubJobs ? subJobs : waitsFor.map(neighbour),
    followers: those(({ after }) => after.includes(job.id)),
    afterFailure: own && own.after.length > 0 ? own.after_failure : null,
  };
}
