import { useState } from "react";
import { type components, useAction, useMe } from "../../api";
import { ConfirmDialog, TextField } from "../../components";
import { coversLane } from "../Lanes/access";
import styles from "./Overview.module.css";

type ActiveJob = components["schemas"]["ActiveJobOut"];

/** Asks before it stops a running job. */
export function CancelDialog({ job, onClose }: { job: ActiveJob | null; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const me = useMe();
  const done = { done: "Cancel requested." };
  const asManager = useAction("post", "/admin/workers/jobs/{job_id}/cancel", done);
  const asCanceller = useAction("post", "/jobs/{job_id}/cancel", done);
  if (job === null) return null;
  const confirm = async () => {
    const action = coversLane(me, "workers:manage", job.lane) ? asManager : asCanceller;
    const body = { reason: reason.trim() || null };
    await action.confirm({ params: { path: { job_id: job.id } }, body });
    setReason("");
  };
  return (
    <ConfirmDialog
      isOpen
      danger
      title={`Cancel ${job.job_type}?`}
      confirmLabel="Cancel the job"
      cancelLabel="Let it run"
      onClose={onClose}
      onConfirm={confirm}
    >
      <div className={styles.question}>
        <p>
          Its worker is asked to stop the handler. From now on, this job can only end as cancelled;
          its checkpoint is kept, and it can be retried.
        </p>
        <TextField label="Reason" isOptional value={reason} onChange={setReason} maxLength={2000} />
      </div>
    </ConfirmDialog>
  );
}
