import { useState } from "react";
import { type components, coversLane, useAction, useMe } from "../../api";
import { ConfirmDialog, TextField } from "../../components";
import styles from "./CancelDialog.module.css";

type Job = components["schemas"]["JobOut"];

type Props = {
  job: Pick<Job, "id" | "job_type" | "lane"> & { isRunning: boolean };
  onClose: () => void;
};

/** Asks before it cancels a job. */
export function CancelDialog({ job, onClose }: Props) {
  const [reason, setReason] = useState("");
  const me = useMe();
  const done = (after: Pick<Job, "status">) =>
    after.status === "cancelled" ? "The job is cancelled" : "The worker is asked to stop the job";
  const asManager = useAction("post", "/admin/workers/jobs/{job_id}/cancel", { done });
  const asCanceller = useAction("post", "/jobs/{job_id}/cancel", { done });
  const confirm = () => {
    const isManager = job.isRunning && coversLane(me, "workers:manage", job.lane);
    const body = { reason: reason.trim() || null };
    const init = { params: { path: { job_id: job.id } }, body };
    return isManager ? asManager.confirm(init) : asCanceller.confirm(init);
  };
  return (
    <ConfirmDialog
      isOpen
      danger
      title={`Cancel ${job.job_type}?`}
      confirmLabel="Cancel the job"
      onClose={onClose}
      onConfirm={confirm}
    >
      <div className={styles.question}>
        <p>
          {job.isRunning
            ? "Its worker is asked to stop it. From now on it can only end as cancelled. Its checkpoint and finished steps are kept, and you can retry it later."
            : "It never starts. You can retry it later."}
        </p>
        <TextField label="Reason" isOptional value={reason} onChange={setReason} maxLength={2000} />
      </div>
    </ConfirmDialog>
  );
}
