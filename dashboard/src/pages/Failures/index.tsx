import { useState } from "react";
import { useApi, useCan, useTopics } from "../../api";
import { BulkDialog, type BulkTarget, verbOf } from "../../bulk";
import { Chip, EmptyState, Notice, PageHeader, SkeletonRows, Tabs } from "../../components";
import { count, plural } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { href, useUrlValue } from "../../shell/url";
import styles from "./Failures.module.css";
import { FailureTable } from "./FailureTable";

const WINDOWS = [
  { id: "1h", seconds: 3600, label: "Last hour", words: "the last hour" },
  { id: "6h", seconds: 21_600, label: "6 hours", words: "the last 6 hours" },
  { id: "24h", seconds: 86_400, label: "24 hours", words: "the last 24 hours" },
] as const;
const MOST = 50;

/** What fails most: by job type and error, with its trend and a retry of all of a kind. */
export default function Failures() {
  useTopics(["jobs"]);
  const [windowId] = useUrlValue("window");
  const [lane, setLane] = useUrlValue("lane");
  const [jobType, setJobType] = useUrlValue("job_type");
  const shown = WINDOWS.find(({ id }) => id === windowId) ?? WINDOWS[0];
  const failures = useApi("/admin/stats/failures", {
    query: {
      window_s: shown.seconds,
      top: MOST,
      ...(lane && { lane }),
      ...(jobType && { job_type: jobType }),
    },
  });
  const canRetry = useCan("jobs:cancel");
  const [retried, setRetried] = useState<BulkTarget | null>(null);
  const items = failures.data?.items ?? [];
  const total = items.reduce((sum, each) => sum + each.failures, 0);
  return (
    <>
      <PageHeader
        title="Failures"
        subtitle={
          items.length > 0 &&
          `${count(total, failures.data?.is_capped)} failed jobs of ${plural(items.length, "kind")} in ${shown.words}`
        }
      />
      <Tabs
        label="Window"
        items={WINDOWS.map(({ id, label }) => ({
          href: href("/failures", {
            window: id === "1h" ? null : id,
            lane,
            job_type: jobType,
          }),
          label,
          isCurrent: id === shown.id,
        }))}
      />
      {(lane || jobType) && (
        <div className={styles.chips}>
          {lane && (
            <Chip name="lane" onRemove={() => setLane(null)}>
              {lane}
            </Chip>
          )}
          {jobType && (
            <Chip name="job_type" onRemove={() => setJobType(null)}>
              {jobType}
            </Chip>
          )}
        </div>
      )}
      <ErrorNotice of={failures} />
      {failures.data?.is_capped && (
        <div className={styles.notice}>
          <Notice kind="info">
            There are more failures than can be examined at once: only the newest are counted.
          </Notice>
        </div>
      )}
      {failures.isPending && <SkeletonRows rows={6} columns="2fr 1fr 1fr 100px 1fr 80px" />}
      {failures.data && items.length === 0 && (
        <EmptyState icon="success" title={`No failures in ${shown.words}`}>
          Jobs that have used up their retries appear here, grouped by job type, lane and error.
        </EmptyState>
      )}
      {failures.data && items.length > 0 && (
        <FailureTable
          failures={items}
          bucketS={failures.data.bucket_s}
          since={shown.id}
          sinceWords={shown.words}
          isOutdated={failures.isPlaceholderData}
          onRetry={canRetry ? setRetried : null}
        />
      )}
      {retried && (
        <BulkDialog verb={verbOf("retry")} target={retried} onClose={() => setRetried(null)} />
      )}
    </>
  );
}
