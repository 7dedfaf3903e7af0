import { useMemo } from "react";
import {
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
import { between, count, duration, percent } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import styles from "./Flow.module.css";
import type { FlowJob, FlowSummary } from "./flowTypes";
import { byName, holdsUp, talliesOf } from "./progress";

const STATES = ["completed", "failed", "cancelled", "running", "approved", "waiting"];
const MOST_NAMED = 5;

type Props = { flow: FlowSummary; jobs: readonly FlowJob[]; isLoading: boolean };

/** How far a flow is, and which jobs it waits for now. */
export function FlowNow({ flow, jobs, isLoading }: Props) {
  const counts = useMemo(() => countStates(jobs), [jobs]);
  const holds = useMemo(() => holdsUp(jobs), [jobs]);
  const end = flow.finished_at;
  const took = end === null ? null : between(flow.created_at, end);
  const shown = STATES.filter((status) => status === "completed" || (counts[status] ?? 0) > 0);
  const number = (status: string) => count(counts[status] ?? 0);
  return (
    <Card title={flow.status === "running" ? "Where it stands" : "How it ended"}>
      <div className={styles.now}>
        <div className={styles.bar}>
          <StateBar counts={isLoading ? talliesOf(flow.counts) : counts} />
          <span className={styles.barWords}>
            {percent(flow.counts.completed, flow.counts.jobs)} of {count(flow.counts.jobs)}{" "}
            {flow.counts.jobs === 1 ? "job" : "jobs"} completed
          </span>
        </div>
        <StatRow>
          {shown.map((status) => (
            <Stat
              key={status}
              label={statusWords(stateWord(status))}
              value={isLoading ? "…" : number(status)}
              href={href("/jobs", { flow: flow.id, status })}
              {...(status === "failed" && { tone: "failed" as const })}
            />
          ))}
          <Stat
            label={end === null ? "Elapsed" : "Took"}
            value={end === null ? <Elapsed since={flow.created_at} asWords /> : duration(took)}
            detail={
              <>
                submitted <Time at={flow.created_at} />
                {flow.created_by && ` by ${flow.created_by}`}
              </>
            }
          />
        </StatRow>
        {holds.length > 0 && (
          <ul className={styles.holds} aria-label="Jobs that hold it up">
            {holds.map(({ status, jobs: named }) => (
              <li key={status} className={styles.hold}>
                <StatusBadge status={status} label={stateWord(status)} />
                <span className={styles.jobs}>
                  {byName(named)
                    .slice(0, MOST_NAMED)
                    .map(({ name, job, size }) => (
                      <LinkText
                        key={name}
                        href={
                          size === 1
                            ? jobPath(job.id)
                            : href("/jobs", { flow: flow.id, status, job_type: job.job_type })
                        }
                      >
                        {name}
                        {size > 1 && ` × ${count(size)}`}
                      </LinkText>
                    ))}
                  {byName(named).length > MOST_NAMED && (
                    <LinkText href={href("/jobs", { flow: flow.id, status })}>more</LinkText>
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}
