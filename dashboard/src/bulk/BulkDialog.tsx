import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { messageOf } from "../api";
import { Button, Dialog, Notice, NumberStepper, SkeletonLines, TextArea } from "../components";
import { filterWords, type JobFilter, renderFilter } from "../filter";
import { count, plural } from "../format";
import styles from "./Bulk.module.css";
import { BulkResult } from "./BulkResult";
import { previewOf, useBulkRun } from "./useBulkRun";
import { type BulkArguments, type BulkTarget, takes, type Verb } from "./verbs";

export type BulkDialogProps = {
  verb: Verb;
  target: BulkTarget;
  onClose: () => void;
  /** More about the jobs, shown before the question is answered. */
  details?: ReactNode;
  /** Some jobs have changed, and the dialog was closed. */
  onDone?: () => void;
};

/** Says how many jobs an action takes, asks, runs it with its progress and sums up. */
export function BulkDialog({ verb, target, details, onClose, onDone }: BulkDialogProps) {
  const [reason, setReason] = useState("");
  const [priority, setPriority] = useState(0);
  const run = useBulkRun(verb);
  const preview = useQuery({
    queryKey: ["bulk preview", verb.id, target],
    queryFn: () => (target.kind === "filter" ? previewOf(verb, target.filter) : null),
    enabled: target.kind === "filter" && run.progress === null,
    gcTime: 0,
  });
  const chosen = target.kind === "jobs" ? target.jobs.filter((job) => takes(verb, job)).length : 0;
  const matched = target.kind === "jobs" ? chosen : preview.data?.matched;
  const isCapped = preview.data?.is_more ?? false;
  const given: BulkArguments = {
    ...(verb.needs === "reason" && { reason: reason.trim() }),
    ...(verb.needs === "priority" && { priority }),
  };
  const isBlocked = !matched || (verb.needs === "reason" && reason.trim() === "");
  const close = () => {
    if (run.progress !== null) onDone?.();
    onClose();
  };
  const number = matched === undefined ? "" : `${count(matched, isCapped)} `;
  const of = verb.needs === "priority" ? " of" : "";
  const title = `${verb.label}${of} ${number}${matched === 1 ? "job" : "jobs"}`;
  return (
    <Dialog
      title={run.progress === null ? title : verb.label}
      isOpen
      isAlert={run.progress === null}
      isKept={run.progress !== null}
      onClose={close}
      footer={
        run.progress === null ? (
          <>
            <Button onPress={onClose}>Keep as they are</Button>
            <Button
              variant={verb.isDangerous ? "danger" : "primary"}
              isDisabled={isBlocked}
              isPending={run.isStarting}
              onPress={() => void run.start(target, given, preview.data ?? null)}
            >
              {title}
            </Button>
          </>
        ) : (
          <Button variant="primary" onPress={close}>
            {run.progress.state === "running" && target.kind === "filter"
              ? "Close, and let it run"
              : "Close"}
          </Button>
        )
      }
    >
      <div className={styles.body}>
        {run.error && <Notice kind="error" live title={messageOf(run.error)} />}
        {run.progress !== null ? (
          <BulkResult verb={verb} progress={run.progress} />
        ) : (
          <>
            <Which target={target} chosen={chosen} verb={verb} />
            {target.kind === "filter" && preview.isPending && <SkeletonLines count={1} />}
            {preview.error && <Notice kind="error" title={messageOf(preview.error)} />}
            {preview.data && target.kind === "filter" && (
              <Matched count={preview.data.matched} isCapped={preview.data.is_more} verb={verb} />
            )}
            {details}
            <p>{verb.effect}</p>
            {verb.needs === "reason" && (
              <TextArea
                label="Reason"
                hint="Stored with each job, and shown to its submitter"
                value={reason}
                onChange={setReason}
                rows={2}
                maxLength={2000}
              />
            )}
            {verb.needs === "priority" && (
              <NumberStepper
                label="New priority"
                hint="Higher starts first; 0 is the usual one"
                value={priority}
                onChange={setPriority}
                minValue={-32768}
                maxValue={32767}
              />
            )}
          </>
        )}
      </div>
    </Dialog>
  );
}

function Which({ target, chosen, verb }: { target: BulkTarget; chosen: number; verb: Verb }) {
  if (target.kind === "filter") return <FilterInWords filter={target.filter} />;
  const others = target.jobs.length - chosen;
  if (others === 0) return null;
  return (
    <p>
      {chosen === 0
        ? "None of the selected jobs"
        : `${plural(chosen, "job")} of ${target.jobs.length}`}{" "}
      can be {verb.past}. {others === 1 ? "The other one is" : "The others are"} in another state
      and stay as they are.
    </p>
  );
}

function FilterInWords({ filter }: { filter: JobFilter }) {
  const text = renderFilter(filter);
  return (
    <p>
      All {filterWords(filter)}
      {text !== "" && (
        <>
          {" "}
          (<code>{text}</code>)
        </>
      )}
      . Newer jobs are left alone.
    </p>
  );
}

function Matched(props: { count: number; isCapped: boolean; verb: Verb }) {
  const { only } = props.verb;
  if (props.count > 0) {
    return (
      <p className={styles.matched}>
        <strong>{count(props.count, props.isCapped)}</strong>{" "}
        {props.count === 1 && !props.isCapped ? "job" : "jobs"} can be {props.verb.past} now
        {only && `, except those ${only.otherwise}`}.
      </p>
    );
  }
  return <p className={styles.matched}>No job can be {props.verb.past}.</p>;
}
