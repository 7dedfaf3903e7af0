import { ProgressBar } from "../../components";
import { relative, shortId } from "../../format";
import { useNow } from "../../time";
import { type WaitsFor, waitWords } from "../Job/waitsFor";
import styles from "./Jobs.module.css";
import type { Job } from "./useJobList";

const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** What matters most of a job in its state: its progress, its error, or when it may start. */
export function Detail({ job }: { job: Job }) {
  const { status, progress } = job;
  if (status === "running" && hasDetail(job)) {
    const words = job.cancel_requested_at
      ? "stopping"
      : (progress?.message ?? progress?.stage ?? "");
    return (
      <span className={styles.progress} title={words}>
        {progress && <ProgressBar percent={progress.percent} label={`Progress of ${job.id}`} />}
        <span className={styles.cut}>{words}</span>
      </span>
    );
  }
  if (status === "failed" && job.error) {
    const [head = ""] = job.error.message.split("\n", 1);
    return (
      <span title={`${job.error.type}: ${head}`}>
        <span className={styles.errorType}>{job.error.type}</span>
        {head && <span className="muted"> {head}</span>}
      </span>
    );
  }
  if (status === "cancelled" && job.cancel_reason) {
    const reason = job.cancel_reason.replace(UUIDS, shortId);
    return (
      <span className="muted" title={job.cancel_reason}>
        {reason}
      </span>
    );
  }
  if (status === "waiting" && job.waits_for) return <Wait wait={job.waits_for} />;
  if (status === "awaiting_approval" && job.expires_at) {
    return <Ahead words="expires" at={job.expires_at} />;
  }
  if (status === "approved" && job.run_at) return <Ahead words="starts" at={job.run_at} />;
  return <span className="muted">—</span>;
}

function Wait({ wait }: { wait: WaitsFor }) {
  if (wait.kind === "sleep" && wait.until) return <Ahead words="continues" at={wait.until} />;
  const words = `for ${waitWords(wait)}`;
  return (
    <span className="muted" title={words}>
      {words}
    </span>
  );
}

function Ahead({ words, at }: { words: string; at: string }) {
  const now = useNow();
  if (Date.parse(at) <= now) return <span className="muted">—</span>;
  return (
    <span className="muted" title={at}>
      {words} {relative(at, now)}
    </span>
  );
}

/** Whether there is a detail to show. */
export function hasDetail(job: Job): boolean {
  const { status, error, cancel_reason, expires_at, run_at } = job;
  const isAhead = (at: string | null) => at !== null && Date.parse(at) > Date.now();
  return (
    (status === "running" && (job.progress !== null || job.cancel_requested_at !== null)) ||
    (status === "failed" && error !== null) ||
    (status === "cancelled" && !!cancel_reason) ||
    (status === "waiting" && job.waits_for !== null) ||
    (status === "awaiting_approval" && isAhead(expires_at)) ||
    (status === "approved" && isAhead(run_at))
  );
}
