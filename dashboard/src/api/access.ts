import type { components } from "./_generated/schema";
import type { Me } from "./session";

/** What permissions look at in a job. */
export type OwnedJob = Pick<components["schemas"]["JobOut"], "created_by" | "workspace" | "lane">;

/** Whether the principal has the permission for at least some jobs or lanes. */
export function allows(me: Me, permission: string): boolean {
  return termsOf(me, permission).length > 0;
}

/** Whether a permission covers this job, and not only others. */
export function covers(me: Me, permission: string, job: OwnedJob): boolean {
  return termsOf(me, permission).some(
    ({ owner, workspace, lanes }) =>
      (owner === null || owner === job.created_by) &&
      (workspace === null || workspace === job.workspace) &&
      (lanes === null || lanes.includes(job.lane)),
  );
}

/** Whether a permission covers a lane. */
export function coversLane(me: Me, permission: string, lane: string): boolean {
  return termsOf(me, permission).some(({ lanes }) => lanes === null || lanes.includes(lane));
}

/** Whether a permission covers all lanes: the gate, limits and job types belong to no lane. */
export function coversEverything(me: Me, permission: string): boolean {
  return termsOf(me, permission).some(
    ({ owner, workspace, lanes }) => owner === null && workspace === null && lanes === null,
  );
}

const termsOf = (me: Me, permission: string) => me.permissions[permission] ?? [];
