import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type components, request, useApi } from "../api";
import { isEmpty, type JobFilter, toChoice } from "../filter";
import { eachOf } from "./pool";
import { addTo, type BulkProgress } from "./progress";
import { isSkip, reasonOf, runOne } from "./runOne";
import { type BulkArguments, type BulkTarget, type ChosenJob, takes, type Verb } from "./verbs";

type Preview = components["schemas"]["PreviewOut"];
type Run = components["schemas"]["BulkRunOut"];

// The server works on one job at a time too; a few at once hide the way there.
const AT_ONCE = 6;
const POLL_S = 0.5;

/** Count the jobs that a verb would take, without changing any. */
export function previewOf(verb: Verb, filter: JobFilter): Promise<Preview> {
  const body = { ...order(verb, filter, placeholderFor(verb)), dry_run: true };
  return request("post", "/jobs/bulk", { body }) as Promise<unknown> as Promise<Preview>;
}

// A dry run checks the arguments too.
const placeholderFor = (verb: Verb): BulkArguments =>
  verb.needs === "reason" ? { reason: "-" } : verb.needs === "priority" ? { priority: 0 } : {};

function order(verb: Verb, filter: JobFilter, given: BulkArguments) {
  return {
    verb: verb.id,
    filter: toChoice(filter),
    all: isEmpty(filter),
    dry_run: false,
    ...given,
  };
}

type BulkRunner = {
  progress: BulkProgress | null;
  error: Error | null;
  isStarting: boolean;
  start: (target: BulkTarget, given: BulkArguments, preview: Preview | null) => Promise<void>;
};

/** Run a verb on many jobs: chosen ones one by one, matching ones as one run on the server. */
export function useBulkRun(verb: Verb): BulkRunner {
  const cache = useQueryClient();
  const [own, setOwn] = useState<BulkProgress | null>(null);
  const [run, setRun] = useState<{ id: string; total: number | null } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isStarting, setStarting] = useState(false);
  const [isOver, setOver] = useState(false);
  const followed = useApi(
    "/jobs/bulk/{run_id}",
    { path: { run_id: run?.id ?? "" } },
    { enabled: run !== null, everyS: isOver ? 0 : POLL_S },
  );
  const state = run === null ? undefined : followed.data?.state;
  useEffect(() => {
    if (state === undefined || state === "running") return;
    setOver(true);
    void cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== BULK_ROUTE });
  }, [state, cache]);

  const runEach = async (jobs: readonly ChosenJob[], given: BulkArguments) => {
    const fitting = jobs.filter((job) => takes(verb, job));
    const others = jobs.length - fitting.length;
    setOwn({
      state: "running",
      total: jobs.length,
      done: 0,
      skipped: others > 0 ? { "the job is in another state": others } : {},
      failed: {},
    });
    const add = (change: (before: BulkProgress) => BulkProgress) =>
      setOwn((before) => before && change(before));
    await eachOf(fitting, AT_ONCE, async ({ id }) => {
      try {
        await runOne(verb.id, id, given);
        add((before) => ({ ...before, done: before.done + 1 }));
      } catch (problem) {
        const kind = isSkip(problem) ? "skipped" : "failed";
        const reason = reasonOf(problem, id);
        add((before) => ({ ...before, [kind]: addTo(before[kind], reason) }));
      }
    });
    add((before) => ({ ...before, state: "done" }));
    await cache.invalidateQueries({ refetchType: "active" });
  };

  const start: BulkRunner["start"] = async (target, given, preview) => {
    setError(null);
    if (target.kind === "jobs") return runEach(target.jobs, given);
    setStarting(true);
    try {
      const body = {
        ...order(verb, target.filter, given),
        ...(preview && { upto: preview.upto }),
      };
      const begun = (await request("post", "/jobs/bulk", { body })) as unknown as Run;
      const total = preview && !preview.is_more ? preview.matched : null;
      setRun({ id: begun.id, total });
    } catch (problem) {
      setError(problem instanceof Error ? problem : new Error(String(problem)));
    } finally {
      setStarting(false);
    }
  };

  const progress = run === null ? own : progressOf(followed.data, run.total);
  return { progress, error: error ?? followed.error, isStarting, start };
}

const BULK_ROUTE = "/jobs/bulk/{run_id}";

function progressOf(run: Run | undefined, total: number | null): BulkProgress {
  if (run === undefined) return { state: "running", total, done: 0, skipped: {}, failed: {} };
  const state = (["done", "failed", "interrupted"] as const).find((each) => each === run.state);
  return { state: state ?? "running", total, done: run.done, skipped: run.refused, failed: {} };
}
