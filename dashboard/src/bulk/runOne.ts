import { Problem, request } from "../api";
import type { BulkArguments, VerbId } from "./verbs";

/** Send a verb for one job. */
export async function runOne(verb: VerbId, id: string, given: BulkArguments): Promise<void> {
  const params = { path: { job_id: id } };
  switch (verb) {
    case "retry":
      await request("post", "/jobs/{job_id}/retry", { params });
      return;
    case "run_now":
      await request("post", "/jobs/{job_id}/run_now", { params });
      return;
    case "cancel":
      await request("post", "/jobs/{job_id}/cancel", { params });
      return;
    case "approve":
      await request("post", "/jobs/{job_id}/approve", { params });
      return;
    case "reject":
      await request("post", "/jobs/{job_id}/reject", {
        params,
        body: { reason: given.reason ?? "" },
      });
      return;
    case "reprioritize":
      await request("patch", "/admin/workers/jobs/{job_id}/priority", {
        params,
        body: { priority: given.priority ?? 0 },
      });
      return;
    case "delete":
      await request("delete", "/jobs/{job_id}", { params });
      return;
  }
}

/** Whether the server refused the job itself, not the request. */
export function isSkip(error: unknown): boolean {
  return error instanceof Problem && [404, 409].includes(error.status);
}

/** The reason of a refusal without the job's id, so that equal ones add up. */
export function reasonOf(error: unknown, id: string): string {
  const words = error instanceof Error ? error.message : String(error);
  return words.replace(`job ${id}`, "the job").replaceAll(id, "the job");
}
