import { useMemo } from "react";
import { countStates, cx, LinkText, statusLook, toneClass, urgentState } from "../../components";
import { count, duration } from "../../format";
import { href, jobPath } from "../../shell/url";
import type { FlowJob } from "./flowTypes";
import styles from "./Gantt.module.css";
import { type GanttRow, ganttOf, ticksOf } from "./graph/gantt";
import type { JobGraph } from "./graph/jobGraph";
import { nodesOf } from "./graph/nodes";

type Props = {
  flowId: string;
  jobs: readonly FlowJob[];
  graph: JobGraph;
  critical: ReadonlySet<number>;
  /** Where the bars of open jobs end, in milliseconds since 1970. */
  now: number;
};

// More rows than this are not compared by eye.
const MOST_ROWS = 120;

/** When each job of a flow could start, began and ended. */
export function Gantt({ flowId, jobs, graph, critical, now }: Props) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `graph` changes whenever jobs are added
  const nodes = useMemo(() => nodesOf(jobs, graph, new Set(), MOST_ROWS).nodes, [graph]);
  const { start, end, rows } = useMemo(
    () => ganttOf(jobs, graph, nodes, now),
    [jobs, graph, nodes, now],
  );
  const span = Math.max(1, end - start);
  const percent = (at: number) => `${(100 * (at - start)) / span}%`;
  const width = (from: number, to: number) => `${(100 * (to - from)) / span}%`;
  return (
    <div className={styles.gantt}>
      <div className={styles.axis} aria-hidden="true">
        {ticksOf(span / 1000).map((second) => (
          <span
            key={second}
            className={styles.tick}
            style={{ left: percent(start + second * 1000) }}
          >
            {second === 0 ? "0" : duration(second)}
          </span>
        ))}
      </div>
      <ol className={styles.rows}>
        {rows.map((row) => {
          const counts = countStates(row.jobs.map((place) => jobs[place] as FlowJob));
          const { tone } = statusLook(urgentState(counts));
          const runs = row.started ?? row.to;
          return (
            <li
              key={row.key}
              className={cx(
                styles.row,
                toneClass(tone),
                row.jobs.some((job) => critical.has(job)) && styles.critical,
              )}
            >
              <Name row={row} jobs={jobs} flowId={flowId} />
              <span className={styles.track} aria-hidden="true">
                <span
                  className={styles.queued}
                  style={{ left: percent(row.from), width: width(row.from, runs) }}
                />
                {row.started !== null && (
                  <span
                    className={styles.ran}
                    style={{ left: percent(row.started), width: width(row.started, row.to) }}
                  />
                )}
              </span>
              <span className={styles.times}>{timesOf(row, jobs)}</span>
            </li>
          );
        })}
      </ol>
      <p className={styles.legend}>
        <span className={styles.queuedMark} /> could start, and waited for its turn
        <span className={styles.ranMark} /> ran
        {critical.size > 1 && <strong>bold: decided when the flow ended</strong>}
      </p>
    </div>
  );
}

function Name({ row, jobs, flowId }: { row: GanttRow; jobs: readonly FlowJob[]; flowId: string }) {
  const first = jobs[row.jobs[0] ?? 0];
  if (row.jobs.length === 1 && first) {
    return (
      <LinkText quiet href={jobPath(first.id)} className={styles.name} title={first.job_type}>
        {first.name ?? first.job_type}
      </LinkText>
    );
  }
  const types = new Set(row.jobs.map((place) => jobs[place]?.job_type));
  const type = types.size === 1 ? first?.job_type : undefined;
  return (
    <LinkText quiet href={href("/jobs", { flow: flowId, job_type: type })} className={styles.name}>
      {type ?? `${types.size} job types`} × {count(row.jobs.length)}
    </LinkText>
  );
}

function timesOf({ from, started, to, jobs: places }: GanttRow, jobs: readonly FlowJob[]): string {
  if (started === null) {
    const isOpen = places.some((place) => jobs[place]?.finished_at === null);
    return isOpen ? "not started" : "did not run";
  }
  const waited = started - from >= 1000 ? ` after ${duration((started - from) / 1000)}` : "";
  return duration((to - started) / 1000) + waited;
}
