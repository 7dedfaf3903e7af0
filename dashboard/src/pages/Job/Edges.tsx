import type { components } from "../../api";
import { Card, LinkText, StatusBadge, stateWord } from "../../components";
import { count, shortId } from "../../format";
import { flowPath, jobPath } from "../../shell/url";
import styles from "./Edges.module.css";
import { type Neighbour, neighboursOf } from "./neighbours";
import { useJobFlow } from "./useJobFlow";

type Job = components["schemas"]["JobDetailOut"];

const MOST = 8;
const FAILURES: Record<string, string> = {
  run: "It runs also if one of them fails.",
  hold: "If one fails, it waits until that one is retried and completes.",
};

/** The jobs before and after this one in its flow, its sub-jobs, and the job that runs it. */
export function Edges({ job }: { job: Job }) {
  const flow = useJobFlow(job);
  // Without a flow, the reasons name the jobs for which it waits.
  if (job.flow === null) return null;
  const found = neighboursOf(job, flow?.jobs ?? []);
  return (
    <>
      <Jobs title="Sub-job of" jobs={found.owner} flow={job.flow} />
      <Jobs
        title="Comes after"
        jobs={found.before}
        flow={job.flow}
        note={FAILURES[found.afterFailure ?? ""]}
      />
      <Jobs title="Its sub-jobs" jobs={found.subJobs} flow={job.flow} />
      <Jobs title="Followed by" jobs={found.followers} flow={job.flow} />
    </>
  );
}

type Props = {
  title: string;
  jobs: readonly Neighbour[];
  flow: string;
  note?: string | undefined;
};

function Jobs({ title, jobs, flow, note }: Props) {
  if (jobs.length === 0) return null;
  const hidden = jobs.length - MOST;
  return (
    <Card title={title} subtitle={note}>
      <ul className={styles.jobs}>
        {jobs.slice(0, MOST).map(({ id, name, status }) => (
          <li key={id} className={styles.job}>
            <LinkText href={jobPath(id)}>
              {name} <span className={styles.id}>{shortId(id)}</span>
            </LinkText>
            {status !== null && <StatusBadge status={status} label={stateWord(status)} plain />}
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <p className={styles.more}>
          <LinkText href={flowPath(flow)}>{count(hidden)} more in its flow</LinkText>
        </p>
      )}
    </Card>
  );
}
