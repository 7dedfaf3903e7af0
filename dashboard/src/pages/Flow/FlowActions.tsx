import { useState } from "react";
import { useAction, useCan } from "../../api";
import { Button, ConfirmDialog, TextField } from "../../components";
import { plural } from "../../format";
import styles from "./Flow.module.css";
import type { FlowSummary } from "./flowTypes";
import { unfinishedOf } from "./progress";

/** Cancel or retry all of a flow; only for those who may. */
export function FlowActions({ flow }: { flow: FlowSummary }) {
  const [dialog, setDialog] = useState<"cancel" | "retry" | null>(null);
  const canAct = useCan("jobs:cancel");
  const close = () => setDialog(null);
  const ended = flow.counts.failed + flow.counts.cancelled;
  return (
    <>
      {canAct && ended > 0 && (
        <Button
          icon="retry"
          variant={flow.status === "failed" ? "primary" : "default"}
          onPress={() => setDialog("retry")}
        >
          Retry
        </Button>
      )}
      {canAct && unfinishedOf(flow.counts) > 0 && (
        <Button icon="stop" onPress={() => setDialog("cancel")}>
          Cancel
        </Button>
      )}
      {dialog === "cancel" && <CancelFlow flow={flow} onClose={close} />}
      {dialog === "retry" && <RetryFlow flow={flow} onClose={close} />}
    </>
  );
}

type DialogProps = { flow: FlowSummary; onClose: () => void };

function CancelFlow({ flow, onClose }: DialogProps) {
  const [reason, setReason] = useState("");
  const cancel = useAction("post", "/flows/{flow_id}/cancel", {
    done: ({ changed }) => `${plural(changed, "job")} cancelled or asked to stop`,
  });
  const body = { reason: reason.trim() || null };
  return (
    <ConfirmDialog
      isOpen
      danger
      title={`Cancel ${flow.name}?`}
      confirmLabel={`Cancel ${plural(unfinishedOf(flow.counts), "job")}`}
      onClose={onClose}
      onConfirm={() => cancel.confirm({ params: { path: { flow_id: flow.id } }, body })}
    >
      <div className={styles.now}>
        <p>
          Jobs that have not started never start, and running ones are asked to stop. Jobs that have
          ended keep their results. You can retry the flow later.
        </p>
        <TextField label="Reason" isOptional value={reason} onChange={setReason} maxLength={2000} />
      </div>
    </ConfirmDialog>
  );
}

function RetryFlow({ flow, onClose }: DialogProps) {
  const retry = useAction("post", "/flows/{flow_id}/retry", {
    done: ({ changed }) => `${plural(changed, "job")} queued again`,
  });
  const ended = flow.counts.failed + flow.counts.cancelled;
  return (
    <ConfirmDialog
      isOpen
      title={`Retry ${flow.name}?`}
      confirmLabel={`Retry ${plural(ended, "job")}`}
      onClose={onClose}
      onConfirm={() => retry.confirm({ params: { path: { flow_id: flow.id } } })}
    >
      Its failed and cancelled jobs are queued again, with a new retry budget. Each waits for the
      jobs that it comes after; completed jobs do not run again.
    </ConfirmDialog>
  );
}
