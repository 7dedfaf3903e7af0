/** The events of one job, in order and each once, across lost connections and servers. */

import type { Job, JobEventName, Status } from "../_generated/api.js";
import { ApiError } from "./errors.js";
import { follow } from "./event_stream.js";
import { type HttpConnection, type RequestOptions, parsed } from "./http_connection.js";

/** A change of a job; a stream can be resumed after its `id`. */
export interface JobEvent {
  id: string | undefined;
  /** Newer servers may send other names. */
  name: JobEventName;
  /** The job right after the change. */
  job: Job;
}

export interface WatchOptions extends RequestOptions {
  /** Continue after the event with this id. */
  lastEventId?: string | undefined;
}

const ENDS: ReadonlySet<Status> = new Set<Status>(["completed", "failed", "cancelled"]);

export function hasEnded(job: Job): boolean {
  return ENDS.has(job.status);
}

/** Yields the events of a job until it has ended; reconnects, and continues after the last event. */
export function jobEvents(
  connection: HttpConnection,
  id: string,
  { lastEventId, signal }: WatchOptions,
): AsyncGenerator<JobEvent, void, undefined> {
  return follow<JobEvent>(connection, {
    operation: "stream_job",
    id,
    lastEventId,
    signal,
    read: ({ id, event, data }) => ({ id, name: event as JobEventName, job: subjectOf<Job>(data, "job") }),
    isLast: ({ job }) => hasEnded(job),
  });
}

/** The job or the flow of an event. */
export function subjectOf<Subject extends Job | { status: string }>(data: string, what: string): Subject {
  const subject = parsed(data);
  if (typeof subject !== "object" || subject === null || !("status" in subject)) {
    throw new ApiError(200, { code: "server_error", detail: `the stream sent an event without a ${what}` });
  }
  return subject as Subject;
}
