import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type components, keyOf, messageOf, useAction } from "../../api";
import { ConfirmDialog, Notice, TextArea } from "../../components";
import { shortId } from "../../format";
import { AnalysisSummary } from "./AnalysisSummary";
import styles from "./DecisionDialog.module.css";

type Job = Pick<
  components["schemas"]["JobDetailOut"],
  "id" | "job_type" | "created_by" | "seal" | "analysis"
>;
export type DecisionVerb = "approve" | "reject";

type Props = {
  job: Job;
  decision: DecisionVerb;
  onClose: () => void;
  /** Called when the server has confirmed. */
  onDecided?: () => void;
};

/** Approve or reject one job, exactly as it was shown: its seal is sent along. */
export function DecisionDialog({ job, decision, onClose, onDecided }: Props) {
  const cache = useQueryClient();
  const [comment, setComment] = useState("");
  const options = { done: decision === "approve" ? "Approved" : "Rejected", showsError: true };
  const approve = useAction("post", "/jobs/{job_id}/approve", options);
  const reject = useAction("post", "/jobs/{job_id}/reject", options);
  const text = comment.trim();
  const isApproval = decision === "approve";
  const error = approve.error ?? reject.error;
  const params = { path: { job_id: job.id } };
  const decide = () =>
    isApproval
      ? approve.confirm({ params, body: { seal: job.seal, ...(text && { comment: text }) } })
      : reject.confirm({ params, body: { reason: text } });
  const send = async () => {
    try {
      await decide();
    } catch (refusal) {
      // It may have changed: show what it is now behind the dialog.
      void cache.invalidateQueries({ queryKey: keyOf("/jobs/{job_id}", params) });
      throw refusal;
    }
    onDecided?.();
  };
  return (
    <ConfirmDialog
      title={isApproval ? `Approve ${job.job_type}?` : `Reject ${job.job_type}?`}
      isOpen
      onClose={onClose}
      confirmLabel={isApproval ? "Approve" : "Reject"}
      cancelLabel="Not now"
      danger={!isApproval}
      isBlocked={!isApproval && text === ""}
      onConfirm={send}
    >
      <div className={styles.body}>
        <p>
          Job <code>{shortId(job.id)}</code>
          {job.created_by && ` of ${job.created_by}`}
          {isApproval
            ? " runs exactly as it is shown. If it has changed meanwhile, nothing happens."
            : " is cancelled. Its requester sees the reason."}
        </p>
        {isApproval && <AnalysisSummary analysis={job.analysis} />}
        <TextArea
          label={isApproval ? "Comment" : "Reason"}
          isOptional={isApproval}
          isRequired={!isApproval}
          value={comment}
          onChange={setComment}
          rows={3}
          maxLength={1000}
        />
        {error && (
          <Notice kind="error" live>
            {messageOf(error)}
          </Notice>
        )}
      </div>
    </ConfirmDialog>
  );
}
