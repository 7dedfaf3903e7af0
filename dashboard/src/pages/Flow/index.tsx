import { Fragment, useMemo, useState } from "react";
import { useParams } from "wouter";
import { Problem, useApiPages, useTopics } from "../../api";
import {
  Card,
  CopyButton,
  EmptyState,
  LinkText,
  LoadingCards,
  PageHeader,
  SkeletonCard,
  StatusBadge,
  Tabs,
  TitleWithId,
} from "../../components";
import { count } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { flowPath, href, useUrlValue } from "../../shell/url";
import { Time, useNow } from "../../time";
import styles from "./Flow.module.css";
import { FlowActions } from "./FlowActions";
import { FlowNow } from "./FlowNow";
import type { FlowSummary } from "./flowTypes";
import { Gantt, MOST_ZOOM } from "./Gantt";
import { FULL_SCALE, Graph } from "./Graph";
import { criticalPath } from "./graph/criticalPath";
import { useFlowGraph } from "./useFlowGraph";
import { Zoom } from "./Zoom";

const PAGE_SIZE = 1000;

/** One flow: how far it is and what holds it up, its graph, and when each job ran. */
export default function Flow() {
  const { id = "" } = useParams<{ id: string }>();
  return <FlowPage key={id} id={id} />;
}

function FlowPage({ id }: { id: string }) {
  const found = useApiPages(
    "/flows/{flow_id}",
    { path: { flow_id: id }, query: { limit: PAGE_SIZE } },
    { isWhole: true },
  );
  const flow = found.data?.pages[0];
  const isMissing = found.error instanceof Problem && [404, 422].includes(found.error.status);
  useTopics(flow && !isMissing ? [`flow:${id}`] : []);
  const [view] = useUrlValue("view");
  const isGantt = view === "timeline";
  const jobs = found.items;
  const graph = useFlowGraph(jobs);
  const isOver = flow !== undefined && flow.status !== "running";
  // How long it took matters only if it completed.
  const isDone = flow?.status === "completed";
  const critical = useMemo(
    () => new Set(isDone ? criticalPath(jobs, graph) : []),
    [isDone, jobs, graph],
  );
  const [graphZoom, setGraphZoom] = useState(FULL_SCALE);
  const [ganttZoom, setGanttZoom] = useState(0);
  if (isMissing) return <NotFound id={id} />;
  if (!flow) {
    return (
      <>
        <PageHeader breadcrumb={<LinkText href="/flows">Flows</LinkText>} title="Flow" />
        <ErrorNotice of={found} />
        {!found.error && (
          <LoadingCards className={styles.page}>
            <SkeletonCard lines={3} />
            <SkeletonCard lines={10} />
          </LoadingCards>
        )}
      </>
    );
  }
  const isLoading = found.hasNextPage && !found.error;
  const shown = { flowId: id, jobs, graph, critical };
  return (
    <>
      <PageHeader
        breadcrumb={<LinkText href="/flows">Flows</LinkText>}
        title={<TitleWithId name={flow.name} id={flow.id} />}
        subtitle={<Origin flow={flow} />}
        meta={
          <>
            <CopyButton text={flow.id} label="Copy id" />
            <StatusBadge status={flow.status} />
          </>
        }
        actions={<FlowActions flow={flow} />}
      />
      <ErrorNotice of={found} />
      <div className={styles.page}>
        <FlowNow flow={flow} jobs={jobs} isLoading={isLoading} />
        <Card flush>
          <Tabs
            inset
            label="View"
            items={[
              { href: flowPath(id), label: "Graph", isCurrent: !isGantt },
              {
                href: href(flowPath(id), { view: "timeline" }),
                label: "Timeline",
                isCurrent: isGantt,
              },
            ]}
            tools={
              isGantt ? (
                <Zoom at={ganttZoom} most={MOST_ZOOM} onChange={setGanttZoom} />
              ) : (
                <Zoom at={graphZoom} most={FULL_SCALE} onChange={setGraphZoom} />
              )
            }
          />
          {isLoading && (
            <p className={styles.note} role="status">
              {count(jobs.length)} of {count(flow.counts.jobs)} jobs are loaded.
            </p>
          )}
          {jobs.length === 0 ? (
            <EmptyState icon="flow" title="No jobs to show">
              You may see none of its jobs, or retention has deleted them.
            </EmptyState>
          ) : isGantt ? (
            <Timeline {...shown} isOver={isOver} zoom={ganttZoom} />
          ) : (
            <Graph {...shown} isComplete={!isLoading} zoom={graphZoom} />
          )}
        </Card>
      </div>
    </>
  );
}

/** When and by whom a flow was submitted, and its tags. */
function Origin({ flow }: { flow: FlowSummary }) {
  return (
    <>
      Submitted <Time at={flow.created_at} />
      {flow.created_by && ` by ${flow.created_by}`}
      {flow.tags.map((tag) => (
        <Fragment key={tag}>
          {" · "}
          <LinkText href={href("/flows", { tag })}>{tag}</LinkText>
        </Fragment>
      ))}
    </>
  );
}

type TimelineProps = Omit<Parameters<typeof Gantt>[0], "now"> & { isOver: boolean };

function Timeline({ isOver, ...rest }: TimelineProps) {
  return isOver ? <Gantt {...rest} now={0} /> : <OpenTimeline {...rest} />;
}

/** The bars of running jobs grow with the clock. */
function OpenTimeline(props: Omit<TimelineProps, "isOver">) {
  return <Gantt {...props} now={useNow()} />;
}

function NotFound({ id }: { id: string }) {
  return (
    <>
      <PageHeader breadcrumb={<LinkText href="/flows">Flows</LinkText>} title="Flow" />
      <EmptyState
        icon="search"
        title="No such flow"
        action={<LinkText href="/flows">Show all flows</LinkText>}
      >
        <p>
          <code className={styles.wanted}>{id}</code> does not exist, was deleted with its youngest
          job, or is outside of what you may see.
        </p>
      </EmptyState>
    </>
  );
}
