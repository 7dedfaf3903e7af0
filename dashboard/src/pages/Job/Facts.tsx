import type { components } from "../../api";
import { Card, CopyButton, KeyValue, type KeyValueItem, LinkText } from "../../components";
import { duration, shortId } from "../../format";
import { flowPath, href, lanePath } from "../../shell/url";
import { Time } from "../../time";
import { useJobTypes } from "../Jobs/useJobTypes";
import styles from "./Facts.module.css";
import { useJobFlow } from "./useJobFlow";

type Job = components["schemas"]["JobDetailOut"];

const SCHEDULE = "schedule:";

/** Everything else that is known about a job. */
export function Facts({ job }: { job: Job }) {
  const { types } = useJobTypes({ isWhole: false });
  const type = types.find(({ name }) => name === job.job_type);
  const flow = useJobFlow(job);
  const items: (KeyValueItem | false | null | "")[] = [
    { name: "Id", value: <Copied text={job.id} label="Copy id" /> },
    {
      name: "Job type",
      value: <LinkText href={href("/jobs", { job_type: job.job_type })}>{job.job_type}</LinkText>,
    },
    { name: "Lane", value: <LinkText href={lanePath(job.lane)}>{job.lane}</LinkText> },
    job.flow !== null && {
      name: "Flow",
      value: (
        <LinkText href={flowPath(job.flow)} title={job.flow}>
          {flow?.name ?? shortId(job.flow)}
        </LinkText>
      ),
    },
    { name: "Priority", value: job.priority },
    { name: "Workspace", value: job.workspace },
    { name: "Submitted", value: <Time at={job.created_at} full /> },
    { name: "Submitted by", value: <Submitter name={job.created_by} /> },
    isLater(job.run_at, job.created_at) && {
      name: "Not before",
      value: <Time at={job.run_at} full />,
    },
    { name: "Retries", value: `${job.retries} of ${job.max_retries}` },
    type?.timeout_s != null && { name: "Timeout", value: duration(type.timeout_s) },
    type?.max_age_s != null && { name: "Maximum age", value: duration(type.max_age_s) },
    job.tags.length > 0 && {
      name: "Tags",
      value: (
        <span className={styles.tags}>
          {job.tags.map((tag) => (
            <LinkText key={tag} href={href("/jobs", { tag })}>
              {tag}
            </LinkText>
          ))}
        </span>
      ),
    },
    job.unique_key !== null && { name: "Unique key", value: <code>{job.unique_key}</code> },
    job.concurrency_key !== null && {
      name: "Concurrency key",
      value: <code>{job.concurrency_key}</code>,
    },
    job.expires_at &&
      job.status === "awaiting_approval" && {
        name: "Approval expires",
        value: <Time at={job.expires_at} full />,
      },
    job.traceparent && {
      name: "Trace",
      value: <Copied text={traceId(job.traceparent)} label="Copy trace id" />,
    },
  ];
  return (
    <Card title="Facts">
      <KeyValue items={items.filter((item) => !!item)} />
    </Card>
  );
}

/** A job without a delay may run from its submit on; that goes without saying. */
function isLater(runAt: string | null, createdAt: string): boolean {
  return runAt !== null && Date.parse(runAt) - Date.parse(createdAt) > 1000;
}

function Submitter({ name }: { name: string | null }) {
  if (name === null) return "—";
  if (!name.startsWith(SCHEDULE)) return name;
  const schedule = name.slice(SCHEDULE.length);
  return (
    <>
      schedule <LinkText href="/schedules">{schedule}</LinkText>
    </>
  );
}

/** The trace id of a W3C traceparent: what tracing tools search for. */
function traceId(traceparent: string): string {
  return traceparent.split("-")[1] ?? traceparent;
}

function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span className={styles.copied}>
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  );
}
