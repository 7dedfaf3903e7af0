import { useApi } from "../../api";
import { LinkText, StatusBadge } from "../../components";
import { count } from "../../format";
import { href, jobPath } from "../../shell/url";
import styles from "./Flow.module.css";
import type { FlowJob, FlowSummary } from "./flowTypes";

const MOST = 5;

/** Which jobs of a flow failed, and why: the newest first. */
export function FailedJobs({ flow, jobs }: { flow: FlowSummary; jobs: readonly FlowJob[] }) {
  const found = useApi(
    "/jobs",
    { query: { flow: flow.id, status: "failed", limit: MOST } },
    { small: true },
  );
  const failed = (found.data?.items ?? []).filter(({ status }) => status === "failed");
  if (failed.length === 0) return null;
  const more = flow.counts.failed - failed.length;
  const nameOf = (id: string) => jobs.find((job) => job.id === id)?.name;
  return (
    <ul className={styles.holds} aria-label="Jobs that failed">
      {failed.map(({ id, status, job_type, error }) => (
        <li key={id} className={styles.hold}>
          <span className={styles.holdState}>
            <StatusBadge status={status} plain />
          </span>
          <span className={styles.jobs}>
            <LinkText href={jobPath(id)}>{nameOf(id) ?? job_type}</LinkText>
            {error && (
              <span className={styles.error}>
                <span className={styles.errorType}>{error.type}</span>{" "}
                {error.message.split("\n", 1)[0]}
              </span>
            )}
          </span>
        </li>
      ))}
      {more > 0 && (
        <li className={styles.hold}>
          <LinkText href={href("/jobs", { flow: flow.id, status: "failed" })}>
            {count(more)} more failed
          </LinkText>
        </li>
      )}
    </ul>
  );
}
