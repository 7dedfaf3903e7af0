import { useMemo } from "react";
import {
  BAR_STATES,
  Card,
  countStates,
  LinkText,
  Stat,
  StateBar,
  StatRow,
  StatusBadge,
  stateWord,
  statusWords,
} from "../../components";
import { between, count, duration, plural } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed } from "../../time";
import { FailedJobs } from "./FailedJobs";
import styles from "./Flow.module.css";
import type { FlowJob, FlowSummary } from "./flowTypes";
import { byName, holdsUp, talliesOf } from "./progress";

const MOST_NAMED = 4;

type Props = { flow: FlowSummary; jobs: readonly FlowJob[]; isLoading: boolean };

/** How far a flow is, what failed, and which jobs it waits for now. */
export function FlowNow({ flow, jobs, isLoading }: Props) {
  const counts = useMemo(() => countStates(jobs), [jobs]);
  const holds = useMemo(() => holdsUp(jobs), [jobs]);
  const end = flow.finished_at;
  const shown = BAR_STATES.filter((status) => status === "completed" || (counts[status] ?? 0) > 0);
  return (
    <Card
      title={flow.status === "running" ? "Where it stands" : "How it ended"}
      actions={
        <LinkText href={href("/jobs", { flow: flow.id })}>
          All {plural(flow.counts.jobs, "job")}
        </LinkText>
      }
    >
      <div className={styles.now}>
        <div className={styles.bar}>
          <StateBar counts={isLoading ? talliesOf(flow.counts) : counts} />
          <span className={styles.barWords}>
            {count(flow.counts.completed)} of {plural(flow.counts.jobs, "job")} completed
          </span>
        </div>
        <StatRow>
          {shown.map((status) => (
            <Stat
              key={status}
              label={statusWords(stateWord(status))}
              value={isLoading ? "…" : count(counts[status] ?? 0)}
              href={href("/jobs", { flow: flow.id, status })}
              {...(status === "failed" && { tone: "failed" as const })}
            />
          ))}
          <Stat
            label={end === null ? "Elapsed" : "Took"}
            value={
              end === null ? (
                <Elapsed since={flow.created_at} />
              ) : (
                duration(between(flow.created_at, end))
              )
            }
          />
        </StatRow>
        {flow.counts.failed > 0 && <FailedJobs flow={flow} jobs={jobs} />}
        {holds.length > 0 && (
          <ul className={styles.holds} aria-label="Jobs that hold it up">
            {holds.map(({ status, jobs: held }) => (
              <Held key={status} flowId={flow.id} status={status} jobs={held} />
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

type HeldProps = { flowId: string; status: string; jobs: readonly FlowJob[] };

/** The jobs in one state, the first few by name. */
function Held({ flowId, status, jobs }: HeldProps) {
  const named = byName(jobs);
  const rest = named.slice(MOST_NAMED).reduce((sum, { size }) => sum + size, 0);
  return (
    <li className={styles.hold}>
      <span className={styles.holdState}>
        <StatusBadge status={status} label={stateWord(status)} plain />
      </span>
      <span className={styles.jobs}>
        {named.slice(0, MOST_NAMED).map(({ name, job, size }) => (
          <LinkText
            key={name}
            href={
              size === 1
                ? jobPath(job.id)
                : href("/jobs", { flow: flowId, status, job_type: job.job_type })
            }
          >
            {name}
            {size > 1 && ` × ${count(size)}`}
          </LinkText>
        ))}
        {rest > 0 && (
          <LinkText href={href("/jobs", { flow: flowId, status })}>{count(rest)} more</LinkText>
        )}
      </span>
    </li>
  );
}
