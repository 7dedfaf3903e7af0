/** The events of one flow and its jobs, across lost connections and servers. */

import type { Flow, Job } from "../_generated/api.js";
import { follow } from "./event_stream.js";
import type { HttpConnection, RequestOptions } from "./http_connection.js";
import { subjectOf } from "./job_events.js";

/** A change of a flow or of one of its jobs. */
export interface FlowEvent {
  id: string | undefined;
  /** `flow.…` has `flow`, `job.…` has `job`; `jobs.changed`: many jobs changed. */
  name: string;
  /** The flow after the change. */
  flow?: Flow;
  /** The job right after the change. */
  job?: Job;
}

/** Yields the flow and the changes of its jobs until all have ended; begins with the flow after each interruption. */
export function flowEvents(
  connection: HttpConnection,
  id: string,
  { signal }: RequestOptions,
): AsyncGenerator<FlowEvent, void, undefined> {
  return follow<FlowEvent>(connection, {
    operation: "stream_flow",
    id,
    signal,
    read: ({ id, event, data }) => {
      if (event.startsWith("flow.")) return { id, name: event, flow: subjectOf<Flow>(data, "flow") };
      if (event.startsWith("job.")) return { id, name: event, job: subjectOf<Job>(data, "job") };
      return { id, name: event };
    },
    isLast: ({ flow }) => flow !== undefined && flow.status !== "running",
  });
}
