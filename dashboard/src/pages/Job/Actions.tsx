import { useState } from "react";
import { useLocation } from "wouter";
import { type components, useAction, useMe } from "../../api";
import { Button, ConfirmDialog, Menu, type MenuEntry, NumberStepper } from "../../components";
import { jobPath } from "../../shell/url";
import { useNow } from "../../time";
import { DecisionDialog } from "../Approvals/DecisionDialog";
import { NewJobDialog } from "../Jobs/NewJob";
import { actionsFor, type JobAction } from "./actionRules";
import { CancelDialog } from "./CancelDialog";
import { CopyAs } from "./CopyAs";

type Job = components["schemas"]["JobDetailOut"];
type Open = JobAction | "copy" | null;

type Props = {
  job: Job;
  /** Called before the job is deleted, and with false if that was refused. */
  onDeleting: (isDeleting: boolean) => void;
};

/** What the person can do with the job: the likely action as a button, the others in a menu. */
export function Actions({ job, onDeleting }: Props) {
  const me = useMe();
  const now = useNow();
  const [, go] = useLocation();
  const [open, setOpen] = useState<Open>(null);
  const allowed = actionsFor(me, job, now);
  const path = { params: { path: { job_id: job.id } } };
  const retry = useAction("post", "/jobs/{job_id}/retry", { done: "The job is queued again" });
  const runNow = useAction("post", "/jobs/{job_id}/run_now", { done: "The job is due now" });
  const close = () => setOpen(null);

  const menu: (MenuEntry | false)[] = [
    allowed.has("reprioritize") && {
      id: "reprioritize",
      label: "Change priority",
      icon: "arrow-up",
      onAction: () => setOpen("reprioritize"),
    },
    allowed.has("clone") && {
      id: "clone",
      label: "Clone with edits",
      icon: "edit",
      onAction: () => setOpen("clone"),
    },
    {
      id: "copy",
      label: "Copy as curl, CLI or Python",
      icon: "copy",
      onAction: () => setOpen("copy"),
    },
    allowed.has("delete") && "line",
    allowed.has("delete") && {
      id: "delete",
      label: "Delete",
      icon: "trash",
      danger: true,
      onAction: () => setOpen("delete"),
    },
  ];
  return (
    <>
      {allowed.has("approve") && (
        <Button variant="primary" icon="check" onPress={() => setOpen("approve")}>
          Approve
        </Button>
      )}
      {allowed.has("reject") && (
        <Button icon="cross" onPress={() => setOpen("reject")}>
          Reject
        </Button>
      )}
      {allowed.has("retry") && (
        <Button
          variant={job.status === "failed" ? "primary" : "default"}
          icon="retry"
          isPending={retry.isPending}
          onPress={() => void retry.run(path)}
        >
          Retry
        </Button>
      )}
      {allowed.has("run_now") && (
        <Button icon="play" isPending={runNow.isPending} onPress={() => void runNow.run(path)}>
          Run now
        </Button>
      )}
      {allowed.has("cancel") && (
        <Button icon="stop" onPress={() => setOpen("cancel")}>
          Cancel
        </Button>
      )}
      <Menu label="More actions" size="md" items={menu.filter((entry) => entry !== false)} />
      {open === "cancel" && (
        <CancelDialog job={{ ...job, isRunning: job.status === "running" }} onClose={close} />
      )}
      {open === "reprioritize" && <PriorityDialog job={job} onClose={close} />}
      {open === "delete" && <DeleteDialog job={job} onClose={close} onDeleting={onDeleting} />}
      {(open === "approve" || open === "reject") && (
        <DecisionDialog job={job} decision={open} onClose={close} />
      )}
      <NewJobDialog
        initial={job}
        isOpen={open === "clone"}
        onClose={close}
        onSubmitted={({ id }) => go(jobPath(id))}
      />
      {open === "copy" && <CopyAs job={job} onClose={close} />}
    </>
  );
}

type DialogProps = { job: Job; onClose: () => void };

function PriorityDialog({ job, onClose }: DialogProps) {
  const [priority, setPriority] = useState(job.priority);
  const change = useAction("patch", "/admin/workers/jobs/{job_id}/priority", {
    done: `The priority is ${priority}`,
  });
  return (
    <ConfirmDialog
      title="Change the priority"
      isOpen
      onClose={onClose}
      confirmLabel={`Set to ${priority}`}
      isBlocked={priority === job.priority}
      onConfirm={() => change.confirm({ params: { path: { job_id: job.id } }, body: { priority } })}
    >
      <NumberStepper
        label="Priority"
        hint={`Higher runs first. It is ${job.priority} now.`}
        value={priority}
        onChange={setPriority}
      />
    </ConfirmDialog>
  );
}

function DeleteDialog({ job, onClose, onDeleting }: DialogProps & Props) {
  const [, go] = useLocation();
  const remove = useAction("delete", "/jobs/{job_id}", { done: "The job was deleted" });
  return (
    <ConfirmDialog
      title="Delete this job?"
      isOpen
      onClose={onClose}
      confirmLabel="Delete"
      danger
      onConfirm={async () => {
        onDeleting(true);
        const answer = await remove.run({ params: { path: { job_id: job.id } } });
        if (answer !== undefined) return go("/jobs");
        onDeleting(false);
        throw remove.error ?? new Error("The job was not deleted.");
      }}
    >
      Its payload, result, attempts and logs are removed. This cannot be undone.
    </ConfirmDialog>
  );
}
