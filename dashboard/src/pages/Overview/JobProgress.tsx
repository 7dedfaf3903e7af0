import type { components } from "../../api";
import { ProgressBar } from "../../components";
import styles from "./Overview.module.css";

type ActiveJob = Pick<
  components["schemas"]["ActiveJobOut"],
  "job_type" | "progress" | "cancel_requested_at"
>;

/** How far a running job is, in its own words. */
export function JobProgress({ job }: { job: ActiveJob }) {
  const { progress } = job;
  const words = [progress?.stage, progress?.message].filter(Boolean).join(" · ");
  if (progress === null && job.cancel_requested_at === null) {
    return <span className={styles.progressWords}>No progress reported</span>;
  }
  return (
    <span className={styles.progress}>
      <ProgressBar
        percent={progress?.percent ?? null}
        label={`Progress of ${job.job_type}`}
        tone={job.cancel_requested_at === null ? "running" : "cancelled"}
      />
      {(words || job.cancel_requested_at !== null) && (
        <span className={styles.progressWords} title={words}>
          {job.cancel_requested_at === null ? words : "Cancel requested"}
        </span>
      )}
    </span>
  );
}
