import type { Me } from "../../api";

/** Whether a permission covers a lane. */
export function coversLane(me: Me, permission: string, lane: string): boolean {
  const terms = me.permissions[permission] ?? [];
  return terms.some(({ lanes }) => lanes === null || lanes.includes(lane));
}

/** Whether a permission covers all lanes: the gate, limits and job types belong to no lane. */
export function coversEverything(me: Me, permission: string): boolean {
  const terms = me.permissions[permission] ?? [];
  return terms.some(
    ({ owner, workspace, lanes }) => owner === null && workspace === null && lanes === null,
  );
}
