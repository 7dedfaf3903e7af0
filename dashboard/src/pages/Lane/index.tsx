import { useParams } from "wouter";
import { Problem, useApi, useTopics } from "../../api";
import {
  Card,
  EmptyState,
  LinkText,
  LoadingCards,
  PageHeader,
  SkeletonCard,
  Stat,
  StatRow,
} from "../../components";
import { count, duration } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { href } from "../../shell/url";
import { Time } from "../../time";
import { LaneActions } from "../Lanes/LaneActions";
import { LaneState } from "../Lanes/LaneState";
import { useManagesLane } from "../Lanes/useAccess";
import { AGEING, byMinuteQuery, laneNumbers, rateWords } from "../Overview/laneNumbers";
import styles from "./Lane.module.css";
import { LaneHistory } from "./LaneHistory";
import { LaneSettingsForm } from "./LaneSettingsForm";
import { QueueDepth } from "./QueueDepth";
import { SettingsList } from "./SettingsList";
import { SlotGrid } from "./SlotGrid";

/** One lane: its settings, its slots, its queue and its history. */
export default function Lane() {
  const { name: wanted = "" } = useParams();
  useTopics([`lane:${wanted}`]);
  const lane = useApi("/admin/workers/lanes/{name}", { path: { name: wanted } });
  const status = useApi("/admin/workers/status", undefined, { everyS: 10 });
  const stats = useApi("/admin/stats", byMinuteQuery, AGEING);
  const isManager = useManagesLane(wanted);
  const breadcrumb = <LinkText href="/lanes">Lanes</LinkText>;
  if (lane.error instanceof Problem && lane.error.status === 404) {
    return (
      <>
        <PageHeader title={wanted} breadcrumb={breadcrumb} />
        <EmptyState icon="lane" title="No such lane">
          It may have another name. <LinkText href="/lanes">All lanes</LinkText>
        </EmptyState>
      </>
    );
  }
  if (!lane.data || lane.data.name !== wanted) {
    return (
      <>
        <PageHeader title={wanted} breadcrumb={breadcrumb} />
        <ErrorNotice of={lane} />
        {lane.isFetching && (
          <LoadingCards className={styles.page}>
            <SkeletonCard lines={1} />
            <SkeletonCard lines={3} />
            <div className={styles.columns}>
              <SkeletonCard lines={10} />
              <SkeletonCard lines={5} />
            </div>
          </LoadingCards>
        )}
      </>
    );
  }
  const { data } = lane;
  const numbers = laneNumbers(stats.data, undefined, stats.dataUpdatedAt)(wanted);
  const jobs = (state: string) => href("/jobs", { status: state, lane: wanted });
  return (
    <>
      <PageHeader
        title={wanted}
        breadcrumb={breadcrumb}
        meta={<LaneState lane={data} isPaused={status.data?.paused ?? false} />}
        subtitle={<Changed at={data.updated_at} by={data.updated_by} frozenBy={data.frozen_by} />}
        actions={<LaneActions lane={data} onLanePage />}
      />
      <div className={styles.page}>
        <StatRow>
          <Stat
            label="Slots in use"
            value={count(data.slots_used)}
            unit={data.max_slots === null ? "unbounded" : `of ${count(data.max_slots)}`}
            href={jobs("running")}
          />
          <Stat
            label="Queued"
            value={count(data.depth, data.depth_is_capped)}
            href={jobs("approved")}
          />
          <Stat
            label="Done per minute"
            value={rateWords(numbers.donePerMinute)}
            href={jobs("completed")}
          />
          <Stat label="Oldest wait" value={duration(data.oldest_wait_s)} href={jobs("approved")} />
        </StatRow>
        <SlotGrid lane={data} active={status.data?.active} />
        <div className={styles.columns}>
          <Card title="Settings">
            {isManager ? <LaneSettingsForm lane={data} /> : <SettingsList lane={data} />}
          </Card>
          <div className={styles.column}>
            <QueueDepth lane={data} />
            {isManager && (
              <Card title="History">
                <LaneHistory name={wanted} />
              </Card>
            )}
          </div>
        </div>
      </div>
    </>
  );
}

type ChangedProps = { at: string | null; by: string | null; frozenBy: string | null };

function Changed({ at, by, frozenBy }: ChangedProps) {
  if (at === null && frozenBy === null) return <>Settings as created</>;
  return (
    <>
      {at !== null && (
        <>
          Changed <Time at={at} />
          {by && ` by ${by}`}
        </>
      )}
      {frozenBy !== null && ` · frozen by ${frozenBy}`}
    </>
  );
}
