import type { ReactNode } from "react";
import { LinkText, StatusBadge } from "../../components";
import { between, duration } from "../../format";
import { jobPath, lanePath } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import { Detail, hasDetail } from "./Detail";
import { JobId } from "./JobId";
import styles from "./Jobs.module.css";
import type { Job } from "./useJobList";

export type Column = {
  id: string;
  name: string;
  isNumeric?: boolean;
  isCut?: boolean;
  /** Left out where there is no room for every column. */
  isMinor?: boolean;
  /** Left out on phones. */
  isExtra?: boolean;
  /** Plain without its name. */
  isSelfEvident?: boolean;
  /** Left out on phones for jobs that have no value. */
  hasValue?: (job: Job) => boolean;
  cell: (job: Job) => ReactNode;
};

/** The columns after the status and the job itself, which are always shown. */
export const COLUMNS: readonly Column[] = [
  {
    id: "lane",
    name: "Lane",
    isSelfEvident: true,
    cell: ({ lane }) => (
      <LinkText quiet href={lanePath(lane)}>
        {lane}
      </LinkText>
    ),
  },
  {
    id: "detail",
    name: "Progress or error",
    isCut: true,
    isSelfEvident: true,
    hasValue: hasDetail,
    cell: (job) => <Detail job={job} />,
  },
  {
    id: "submitted",
    name: "Submitted",
    isNumeric: true,
    isSelfEvident: true,
    cell: ({ created_at }) => <Time at={created_at} />,
  },
  {
    id: "duration",
    name: "Duration",
    isNumeric: true,
    isExtra: true,
    hasValue: ({ started_at }) => started_at !== null,
    cell: (job) => <Duration job={job} />,
  },
  {
    id: "priority",
    isMinor: true,
    name: "Priority",
    isNumeric: true,
    cell: ({ priority }) => priority,
  },
  {
    id: "attempts",
    isMinor: true,
    name: "Attempt",
    isNumeric: true,
    cell: ({ attempt }) => (attempt > 0 ? attempt : "—"),
  },
  { id: "worker", isMinor: true, name: "Worker", cell: ({ worker }) => worker ?? "—" },
  {
    id: "tags",
    name: "Tags",
    isExtra: true,
    hasValue: ({ tags }) => tags.length > 0,
    cell: ({ tags }) => (
      <span className={styles.tags} title={tags.join(", ")}>
        {tags.join(", ") || "—"}
      </span>
    ),
  },
  { id: "workspace", isMinor: true, name: "Workspace", cell: ({ workspace }) => workspace },
  {
    id: "created_by",
    isMinor: true,
    name: "Submitted by",
    cell: ({ created_by }) => created_by ?? "—",
  },
  {
    id: "finished",
    name: "Finished",
    isNumeric: true,
    hasValue: ({ finished_at }) => finished_at !== null,
    cell: ({ finished_at }) => <Time at={finished_at} />,
  },
];

/** Without the columns that are the same for most jobs, so that errors have room. */
export const USUAL_COLUMNS = ["lane", "detail", "submitted", "duration", "attempts", "worker"];

function Duration({ job }: { job: Job }) {
  if (job.status === "running" && job.started_at) return <Elapsed since={job.started_at} />;
  return <>{duration(between(job.started_at, job.finished_at))}</>;
}

export function StatusCell({ job }: { job: Job }) {
  return <StatusBadge plain status={job.status} label={job.label} />;
}

export function NameCell({ job }: { job: Job }) {
  return (
    <span className={styles.name}>
      <LinkText href={jobPath(job.id)} data-open="">
        {job.job_type}
      </LinkText>
      <JobId id={job.id} />
    </span>
  );
}
