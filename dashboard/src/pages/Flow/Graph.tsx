import { useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import {
  countStates,
  cx,
  Icon,
  IconButton,
  ScrollFrame,
  StateBar,
  stateWord,
  stateWords,
  statusLook,
  toneClass,
  urgentState,
} from "../../components";
import { between, count, duration } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed } from "../../time";
import type { FlowJob } from "./flowTypes";
import styles from "./Graph.module.css";
import type { JobGraph } from "./graph/jobGraph";
import { layout, pathOf } from "./graph/layout";
import { type GraphEdge, type GraphNode, nodesOf } from "./graph/nodes";
import { useDragScroll } from "./useDragScroll";

const SIZES = { width: 196, height: 56, gapX: 48, gapY: 16 };
// A box with more jobs is a link to their list instead.
const MOST_OPENED = 40;
const SCALES = [0.25, 0.4, 0.55, 0.75, 1] as const;
/** The number of the largest scale, which comes first. */
export const FULL_SCALE = SCALES.length - 1;
const AHEAD_PX = 120;

type Props = {
  flowId: string;
  jobs: readonly FlowJob[];
  graph: JobGraph;
  /** The jobs that decided when the flow ended. */
  critical: ReadonlySet<number>;
  /** All its jobs are loaded. */
  isComplete: boolean;
  /** The number of its scale. */
  zoom: number;
};

/** The jobs of a flow as boxes from left to right, with lines to what comes after them. */
export function Graph({ flowId, jobs, graph, critical, isComplete, zoom }: Props) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  // Without the states, which change all the time: boxes must not move.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `graph` changes whenever jobs are added
  const { nodes, edges } = useMemo(() => nodesOf(jobs, graph, opened), [graph, opened]);
  const { places, lines, width, height } = useMemo(
    () =>
      layout(
        nodes.map(({ layer }) => layer),
        edges,
        SIZES,
      ),
    [nodes, edges],
  );
  const scale = SCALES[zoom] ?? 1;
  const drawing = useRef<HTMLDivElement>(null);
  const drag = useDragScroll(drawing);
  const hasLooked = useRef(false);
  // The first look goes to what is not done yet, if that is out of sight; later, only people scroll.
  useEffect(() => {
    if (!isComplete || hasLooked.current) return;
    hasLooked.current = true;
    const first = nodes.findIndex((node) => node.jobs.some((job) => isOpen(jobs[job])));
    const [frame, x] = [drawing.current?.parentElement, places[first]?.x ?? 0];
    if (frame && x + SIZES.width > frame.clientWidth) frame.scrollTo({ left: x - AHEAD_PX });
  }, [isComplete, nodes, places, jobs]);
  const open = (key: string) => setOpened(new Set([...opened, key]));
  return (
    <>
      <ScrollFrame label="Graph of the flow" className={styles.frame} maxHeight="70vh">
        <div
          ref={drawing}
          {...drag}
          className={styles.drawing}
          style={{ width: width * scale, height: height * scale }}
        >
          <div className={styles.scaled} style={{ width, height, scale: String(scale) }}>
            <svg className={styles.lines} width={width} height={height} aria-hidden="true">
              {lines.map((points, at) => {
                const edge = edges[at];
                if (edge === undefined) return null;
                return (
                  <path
                    key={`${nodes[edge.from]?.key} ${nodes[edge.to]?.key}`}
                    d={pathOf(points)}
                    className={cx(
                      styles.line,
                      edge.isSubJob && styles.subJob,
                      isCritical(edge, nodes, critical) && styles.critical,
                    )}
                  />
                );
              })}
            </svg>
            <ol>
              {nodes.map((node, at) => (
                <li
                  key={node.key}
                  className={styles.place}
                  style={{
                    left: places[at]?.x ?? 0,
                    top: places[at]?.y ?? 0,
                    width: SIZES.width,
                    height: SIZES.height,
                  }}
                >
                  {node.jobs.length === 1 ? (
                    <JobBox
                      job={jobs[node.jobs[0] ?? 0] as FlowJob}
                      isCritical={critical.has(node.jobs[0] ?? -1)}
                    />
                  ) : (
                    <GroupBox
                      flowId={flowId}
                      jobs={node.jobs.map((place) => jobs[place] as FlowJob)}
                      onOpen={node.jobs.length <= MOST_OPENED ? () => open(node.key) : null}
                    />
                  )}
                </li>
              ))}
            </ol>
          </div>
        </div>
      </ScrollFrame>
      <p className={styles.legend}>
        {edges.some(({ isSubJob }) => isSubJob) && "Dashed lines lead to sub-jobs. "}
        {critical.size > 1 && "Thick lines show the jobs that decided when the flow ended. "}
        {opened.size > 0 && (
          <button type="button" className={styles.close} onClick={() => setOpened(new Set())}>
            Put alike jobs together again
          </button>
        )}
      </p>
    </>
  );
}

function isOpen(job: FlowJob | undefined): boolean {
  return job !== undefined && job.status !== "completed" && job.status !== "cancelled";
}

function isCritical(edge: GraphEdge, nodes: readonly GraphNode[], critical: ReadonlySet<number>) {
  const has = (node: GraphNode | undefined) => node?.jobs.some((job) => critical.has(job)) ?? false;
  return critical.size > 1 && has(nodes[edge.from]) && has(nodes[edge.to]);
}

function JobBox({ job, isCritical }: { job: FlowJob; isCritical: boolean }) {
  const { tone, icon } = statusLook(job.status);
  const name = job.name ?? job.job_type;
  return (
    <Link
      href={jobPath(job.id)}
      className={cx(
        styles.box,
        toneClass(tone),
        job.status === "failed" && styles.failed,
        isCritical && styles.criticalBox,
      )}
      title={name === job.job_type ? name : `${name} (${job.job_type})`}
    >
      <span className={styles.name}>{name}</span>
      <span className={styles.state}>
        <Icon name={icon} size={13} className={cx(tone === "running" && styles.turning)} />
        <span className={styles.words}>{stateWord(job.status)}</span>
        <JobTime job={job} />
      </span>
    </Link>
  );
}

function JobTime({ job }: { job: FlowJob }) {
  if (job.started_at === null) return null;
  return (
    <span className={styles.time}>
      {job.finished_at !== null ? (
        duration(between(job.started_at, job.finished_at))
      ) : job.status === "running" ? (
        <Elapsed since={job.started_at} />
      ) : null}
    </span>
  );
}

type GroupProps = { flowId: string; jobs: FlowJob[]; onOpen: (() => void) | null };

function GroupBox({ flowId, jobs, onOpen }: GroupProps) {
  const counts = countStates(jobs);
  const { tone } = statusLook(urgentState(counts));
  const types = new Set(jobs.map(({ job_type }) => job_type));
  const [type] = types;
  const name = types.size === 1 && type !== undefined ? type : `${types.size} job types`;
  const list = href("/jobs", { flow: flowId, ...(types.size === 1 && { job_type: type }) });
  const done = counts.completed ?? 0;
  return (
    <div
      className={cx(
        styles.box,
        styles.group,
        toneClass(tone),
        (counts.failed ?? 0) > 0 && styles.failed,
      )}
      title={stateWords(counts)}
    >
      <span className={styles.head}>
        <Link href={list} className={styles.name}>
          {name} <span className={styles.size}>× {count(jobs.length)}</span>
        </Link>
        {onOpen && (
          <IconButton
            icon="unfold"
            size="sm"
            label={`Show the ${jobs.length} jobs of ${name} one by one`}
            className={styles.open}
            onPress={onOpen}
          />
        )}
      </span>
      <span className={styles.state}>
        <StateBar counts={counts} />
        <span className={styles.time}>
          {count(done)} of {count(jobs.length)}
        </span>
      </span>
    </div>
  );
}
