import { useMemo, useRef } from "react";
import type { FlowJob } from "./flowTypes";
import { graphOf, type JobGraph } from "./graph/jobGraph";

/** The edges of a flow; computed again only when jobs or edges were added, not when states change. */
export function useFlowGraph(jobs: readonly FlowJob[]): JobGraph {
  const known = useRef<{ jobs: readonly FlowJob[]; graph: JobGraph } | null>(null);
  return useMemo(() => {
    if (known.current === null || !isSameShape(known.current.jobs, jobs)) {
      known.current = { jobs, graph: graphOf(jobs) };
    }
    return known.current.graph;
  }, [jobs]);
}

function isSameShape(before: readonly FlowJob[], now: readonly FlowJob[]): boolean {
  return (
    before.length === now.length &&
    before.every(({ id, after, owner }, place) => {
      const job = now[place];
      return job?.id === id && job.owner === owner && job.after.length === after.length;
    })
  );
}
