import { type components, useApi } from "../../api";
import {
  Card,
  JsonDiff,
  JsonView,
  LinkText,
  SkeletonLines,
  StatusBadge,
  Tabs,
} from "../../components";
import { shortId } from "../../format";
import { href, jobPath, useUrlValue } from "../../shell/url";
import { Time } from "../../time";
import styles from "./Data.module.css";

type Job = components["schemas"]["JobDetailOut"];

const NAMES = {
  payload: "Payload",
  result: "Result",
  checkpoint: "Checkpoint",
  analysis: "Analysis",
};
type Part = keyof typeof NAMES;
const PARTS = Object.keys(NAMES) as Part[];

/** The values of a job as JSON, and how they differ from the previous run. */
export function Data({ job }: { job: Job }) {
  const [wanted] = useUrlValue("data");
  const parts = PARTS.filter((part) => part === "payload" || job[part] !== null);
  const isDifference = wanted === "difference";
  const current = parts.find((part) => part === wanted) ?? "payload";
  const path = jobPath(job.id);
  return (
    <Card title="Data" flush>
      <Tabs
        label="Values of the job"
        inset
        items={[
          ...parts.map((part) => ({
            href: href(path, { data: part === "payload" ? null : part }),
            label: NAMES[part],
            isCurrent: !isDifference && part === current,
          })),
          {
            href: href(path, { data: "difference" }),
            label: "Difference to the previous run",
            isCurrent: isDifference,
          },
        ]}
      />
      <div className={styles.body}>
        {isDifference ? (
          <Difference job={job} />
        ) : (
          <JsonView key={current} label={NAMES[current]} value={job[current]} />
        )}
      </div>
    </Card>
  );
}

function Difference({ job }: { job: Job }) {
  const found = useApi("/jobs", {
    query: { job_type: job.job_type, workspace: job.workspace, until: job.created_at, limit: 1 },
  });
  const previous = found.data?.items[0];
  if (found.isPending) return <SkeletonLines count={3} />;
  if (!previous) {
    return <p className={styles.note}>This is the first job of its type that is still kept.</p>;
  }
  return (
    <div className={styles.difference}>
      <p className={styles.note}>
        Compared with{" "}
        <LinkText href={jobPath(previous.id)} className={styles.id}>
          {shortId(previous.id)}
        </LinkText>{" "}
        of <Time at={previous.created_at} />{" "}
        <StatusBadge status={previous.status} label={previous.label} plain />
      </p>
      <h3>Payload</h3>
      <JsonDiff before={previous.payload} after={job.payload} sameWords="The same payload" />
      {previous.result !== null && job.result !== null && (
        <>
          <h3>Result</h3>
          <JsonDiff before={previous.result} after={job.result} sameWords="The same result" />
        </>
      )}
    </div>
  );
}
