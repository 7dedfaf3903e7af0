import { useState } from "react";
import { type components, useApi, useTopics } from "../../api";
import {
  Button,
  Cell,
  EmptyState,
  HeaderCell,
  LinkText,
  Notice,
  PageHeader,
  Row,
  SkeletonRows,
  SlotBoxes,
  Table,
  TableBody,
  TableHead,
  TextField,
} from "../../components";
import { count, duration } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { href, lanePath, useUrlValue } from "../../shell/url";
import { Time } from "../../time";
import { GateActions } from "./GateActions";
import { LaneActions } from "./LaneActions";
import { LaneState } from "./LaneState";
import styles from "./Lanes.module.css";
import { LaneTypes } from "./LaneTypes";
import { NewLaneDialog } from "./NewLaneDialog";
import { useManagesEverything } from "./useAccess";

type Lane = components["schemas"]["LaneStatusOut"];

/** All lanes with their settings. */
export default function Lanes() {
  useTopics(["jobs"]);
  const status = useApi("/admin/workers/status", undefined, { everyS: 10 });
  const isManager = useManagesEverything();
  const [isCreating, setCreating] = useState(false);
  const { data } = status;
  return (
    <>
      <PageHeader
        title="Lanes"
        subtitle="Each lane has its own slots, so that long jobs do not hold up short ones."
        actions={
          isManager &&
          data && (
            <>
              <GateActions status={data} />
              <Button variant="primary" icon="plus" onPress={() => setCreating(true)}>
                New lane
              </Button>
            </>
          )
        }
      />
      <ErrorNotice of={status} />
      {data?.paused && (
        <div className={styles.notices}>
          <Notice kind="warning" title="All lanes are paused">
            No worker claims a job. Paused by {data.paused_by ?? "somebody"},{" "}
            <Time at={data.paused_at} />.
          </Notice>
        </div>
      )}
      {!data && !status.isError && (
        <SkeletonRows rows={4} columns="1fr 1fr 80px 80px 80px 80px 2fr" />
      )}
      {data?.lanes.length === 0 && (
        <EmptyState icon="lane" title="No lanes in your reach">
          Your role covers no lane that exists.
        </EmptyState>
      )}
      {data && data.lanes.length > 0 && <AllLanes lanes={data.lanes} isPaused={data.paused} />}
      {isCreating && <NewLaneDialog isOpen onClose={() => setCreating(false)} />}
    </>
  );
}

// With more lanes than this, a person searches for one.
const MANY_LANES = 20;
const MOST_SHOWN = 100;

function AllLanes({ lanes, isPaused }: { lanes: Lane[]; isPaused: boolean }) {
  const [wanted, setWanted] = useUrlValue("name");
  const [isWhole, setWhole] = useState(false);
  if (lanes.length <= MANY_LANES) return <LaneTable lanes={lanes} isPaused={isPaused} />;
  const text = (wanted ?? "").toLowerCase();
  const found = lanes.filter(
    ({ name, job_types }) => name.includes(text) || job_types.some((each) => each.includes(text)),
  );
  const shown = isWhole ? found : found.slice(0, MOST_SHOWN);
  return (
    <div className={styles.all}>
      <div className={styles.find}>
        <TextField
          label="Find a lane"
          hideLabel
          placeholder="Name or job type"
          value={wanted ?? ""}
          onChange={setWanted}
        />
      </div>
      {found.length === 0 ? (
        <EmptyState icon="search" title="No lane matches" />
      ) : (
        <LaneTable lanes={shown} isPaused={isPaused} />
      )}
      {shown.length < found.length && (
        <div>
          <Button onPress={() => setWhole(true)}>Show all {count(found.length)} lanes</Button>
        </div>
      )}
    </div>
  );
}

function LaneTable({ lanes, isPaused }: { lanes: Lane[]; isPaused: boolean }) {
  return (
    <Table label="Lanes">
      <TableHead>
        <HeaderCell>Lane</HeaderCell>
        <HeaderCell>Slots</HeaderCell>
        <HeaderCell numeric>Queued</HeaderCell>
        <HeaderCell numeric>Oldest wait</HeaderCell>
        <HeaderCell numeric secondary>
          Poll
        </HeaderCell>
        <HeaderCell numeric secondary>
          Lease
        </HeaderCell>
        <HeaderCell numeric secondary>
          Stale after
        </HeaderCell>
        <HeaderCell>Job types</HeaderCell>
        <HeaderCell>State</HeaderCell>
        <HeaderCell hidden>Actions</HeaderCell>
      </TableHead>
      <TableBody>
        {lanes.map((lane) => (
          <LaneRow key={lane.name} lane={lane} isPaused={isPaused} />
        ))}
      </TableBody>
    </Table>
  );
}

function LaneRow({ lane, isPaused }: { lane: Lane; isPaused: boolean }) {
  const { name } = lane;
  const queued = href("/jobs", { status: "approved", lane: name });
  return (
    <Row brief={lane.slots_used === 0 && lane.depth === 0}>
      <Cell rowHeader>
        <LinkText href={lanePath(name)} className={styles.name}>
          {name}
        </LinkText>
      </Cell>
      <Cell label="Slots" className={styles.boxes}>
        <LinkText href={href("/jobs", { status: "running", lane: name })} quiet>
          <SlotBoxes used={lane.slots_used} total={lane.max_slots} />
        </LinkText>
      </Cell>
      <Cell label="Queued" numeric>
        <LinkText href={queued} quiet>
          {count(lane.depth, lane.depth_is_capped)}
        </LinkText>
      </Cell>
      <Cell label="Oldest wait" numeric>
        {duration(lane.oldest_wait_s)}
      </Cell>
      <Cell label="Poll" numeric secondary>
        {duration(lane.poll_interval_ms / 1000)}
      </Cell>
      <Cell label="Lease" numeric secondary>
        {duration(lane.lease_seconds)}
      </Cell>
      <Cell label="Stale after" numeric secondary>
        {duration(lane.stale_timeout_minutes * 60)}
      </Cell>
      <Cell label="Job types" wide>
        <LaneTypes lane={lane} />
      </Cell>
      <Cell label="State" headline>
        <LaneState lane={lane} isPaused={isPaused} />
      </Cell>
      <Cell control>
        <LaneActions lane={lane} />
      </Cell>
    </Row>
  );
}
