import { useMemo } from "react";
import {
  countStates,
  cx,
  LinkText,
  ScrollFrame,
  stateWord,
  statusLook,
  toneClass,
  urgentState,
} from "../../components";
import { count, duration, plural } from "../../format";
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
  /** The number of its scale. */
  zoom: number;
};

const SCALES = [1, 2, 4, 8, 16, 32] as const;
export const MOST_ZOOM = SCALES.length - 1;
const TICKS = 6;
// More rows than this are not compared by eye.
const MOST_ROWS = 120;

/** When each job of a flow could start, began and ended. */
export function Gantt({ flowId, jobs, graph, critical, now, zoom }: Props) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `graph` changes whenever jobs are added
  const nodes = useMemo(() => nodesOf(jobs, graph, new Set(), MOST_ROWS).nodes, [graph]);
  const { start, end, rows, ahead } = useMemo(
    () => ganttOf(jobs, graph, nodes, now),
    [jobs, graph, nodes, now],
  );
  const span = Math.max(1, end - start);
  const percent = (at: number) => `${(100 * (at - start)) / span}%`;
  const width = (from: number, to: number) => `${(100 * (to - from)) / span}%`;
  const scale = SCALES[zoom] ?? 1;
  const ticks = ticksOf(span / 1000, TICKS * scale);
  return (
    <>
      <ScrollFrame label="Timeline of the flow" className={styles.frame} maxHeight="70vh">
        <div className={styles.gantt} style={{ width: `${100 * scale}%` }}>
          <div className={styles.axis} aria-hidden="true">
            {ticks.map((second) => (
              <span
                key={second}
                className={styles.tick}
                style={{ left: percent(start + second * 1000) }}
              >
                {second === 0 ? "0" : duration(second)}
              </span>
            ))}
          </div>
          <div className={styles.grid} aria-hidden="true">
            {ticks.map((second) => (
              <i key={second} style={{ left: percent(start + second * 1000) }} />
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
        </div>
      </ScrollFrame>
      <p className={styles.legend}>
        <span className={styles.mark}>
          <i className={styles.queuedMark} /> could start, and waited for its turn
        </span>
        <span className={styles.mark}>
          <i className={styles.ranMark} /> ran, in the colour of its state
        </span>
        {critical.size > 1 && <strong>Bold: decided when the flow ended</strong>}
        {ahead > 0 && <span>{plural(ahead, "job")} cannot start yet</span>}
      </p>
    </>
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
    const here = places.flatMap((place) => jobs[place] ?? []);
    if (here.every(({ finished_at }) => finished_at !== null)) return "did not run";
    const counts = countStates(here);
    return `${stateWord(urgentState(counts))} ${duration((to - from) / 1000)}`;
  }
  const waited = started - from >= 1000 ? ` after ${duration((started - from) / 1000)}` : "";
  return duration((to - started) / 1000) + waited;
}
