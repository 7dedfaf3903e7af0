import { type components, useApi } from "../../api";

// Of a larger flow, the page of the flow shows more.
const MOST_JOBS = 1000;

/** The flow of a job with its first jobs; undefined without a flow, and until it is read. */
export function useJobFlow({ flow }: Pick<components["schemas"]["JobDetailOut"], "flow">) {
  return useApi(
    "/flows/{flow_id}",
    { path: { flow_id: flow ?? "" }, query: { limit: MOST_JOBS } },
    { enabled: flow !== null },
  ).data;
}
