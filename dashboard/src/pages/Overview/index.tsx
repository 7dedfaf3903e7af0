import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { type components, useApi, useCan, useTopics } from "../../api";
import { LinkText, PageHeader, SkeletonRows } from "../../components";
import { count } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { failedRead } from "../../shell/failedRead";
import { useSeesEverything } from "../Lanes/useAccess";
import { Charts } from "./Charts";
import { LaneTable } from "./LaneTable";
import { AGEING, byMinuteQuery, LANE_WINDOW_S, laneNumbers } from "./laneNumbers";
import { notableLanes } from "./notableLanes";
import styles from "./Overview.module.css";
import { ProblemStrip } from "./ProblemStrip";
import { FAILURE_WINDOW_S, findProblems } from "./problems";
import { QuickStart } from "./QuickStart";
import { RunningFlows } from "./RunningFlows";
import { RunningJobs } from "./RunningJobs";

type Worker = components["schemas"]["WorkerRowOut"];

// The API lists no more running jobs.
const MOST_ACTIVE = 1000;
const wholeQuery = { query: { ...byMinuteQuery.query, bucket_s: LANE_WINDOW_S } };
const failuresQuery = { query: { window_s: FAILURE_WINDOW_S } };

/** What is wrong, who uses the slots, what runs, and how it went. */
export default function Overview() {
  useTopics(["jobs"]);
  const status = useApi("/admin/workers/status", undefined, { everyS: 10 });
  const byMinute = useApi("/admin/stats", byMinuteQuery, AGEING);
  const whole = useApi("/admin/stats", wholeQuery, AGEING);
  const failures = useApi("/admin/stats/failures", failuresQuery, AGEING);
  const database = useApi("/admin/database", undefined, {
    enabled: useSeesEverything(),
    ...AGEING,
  });
  const cache = useQueryClient();
  const isEmpty = useIsEmpty();
  const failed = failedRead([byMinute, whole, failures, database]);
  const problems = useMemo(
    () =>
      status.data
        ? findProblems({
            status: status.data,
            series: byMinute.data,
            failures: failures.data,
            database: database.data,
          })
        : [],
    [status.data, byMinute.data, failures.data, database.data],
  );
  const numbersOf = useMemo(
    () => laneNumbers(byMinute.data, whole.data, byMinute.dataUpdatedAt),
    [byMinute.data, whole.data, byMinute.dataUpdatedAt],
  );
  if (!status.data) {
    return (
      <>
        <PageHeader title="Overview" />
        <div className={styles.page}>
          <ErrorNotice of={status} />
          <SkeletonRows rows={4} columns="1fr 1fr 80px 80px 80px 120px" />
          <SkeletonRows rows={6} columns="2fr 1fr 1fr 2fr 80px" />
        </div>
      </>
    );
  }
  const { lanes, active, paused, workers } = status.data;
  const shown = notableLanes(lanes, (lane) => numbersOf(lane).ended > 0);
  return (
    <>
      <PageHeader title="Overview" />
      <div className={styles.page}>
        {failed && <ErrorNotice of={{ ...failed, refetch: () => readAgain(cache) }} />}
        <ProblemStrip problems={problems} isComplete={failed === null} />
        {isEmpty && <QuickStart hasWorker={workers.some(takesJobs)} />}
        <LaneTable lanes={shown} isPaused={paused} numbersOf={numbersOf} />
        {shown.length < lanes.length && (
          <p className="muted">
            {shown.length} of {count(lanes.length)} lanes, those where something happens first.{" "}
            <LinkText href="/lanes">All lanes</LinkText>
          </p>
        )}
        {!isEmpty && (
          <>
            <RunningJobs jobs={active} isMore={active.length >= MOST_ACTIVE} />
            <RunningFlows />
            <Charts lanes={lanes.map(({ name }) => name)} />
          </>
        )}
      </div>
    </>
  );
}

/** Read everything on the page again that could not be read. */
function readAgain(cache: QueryClient): void {
  void cache.refetchQueries({ type: "active", predicate: ({ state }) => state.error !== null });
}

/** A server is among the workers too, but has no handlers. */
function takesJobs({ job_types, is_stopping, drain_requested_at }: Worker): boolean {
  return job_types.length > 0 && !is_stopping && drain_requested_at === null;
}

/** Whether there is no job at all; false for people who may not see jobs. */
function useIsEmpty(): boolean {
  const counts = useApi("/jobs/counts", undefined, { enabled: useCan("jobs:read") });
  return counts.data?.items.every(({ count }) => count === 0) ?? false;
}
