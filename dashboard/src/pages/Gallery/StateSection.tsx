import {
  Button,
  Card,
  EmptyState,
  KeyValue,
  Notice,
  ProgressBar,
  SkeletonLines,
  SkeletonRows,
  SlotBoxes,
  Sparkline,
  Stat,
  StatRow,
  StatusBadge,
} from "../../components";
import { history, statuses } from "./data";
import styles from "./Gallery.module.css";
import { Sample, Section } from "./Section";

export function StateSection() {
  return (
    <Section title="States and numbers">
      <Sample name="StatusBadge">
        {statuses.map(([status, label]) => (
          <StatusBadge key={label} status={status} label={label} />
        ))}
      </Sample>
      <Sample name="StatusBadge plain">
        {statuses.map(([status, label]) => (
          <StatusBadge key={label} status={status} label={label} plain />
        ))}
      </Sample>
      <Sample name="SlotBoxes">
        <SlotBoxes used={3} total={5} />
        <SlotBoxes used={0} total={1} />
        <SlotBoxes used={4} total={2} />
        <SlotBoxes used={14} total={20} />
        <SlotBoxes used={12} total={40} />
        <SlotBoxes used={3} total={null} />
        <SlotBoxes used={0} total={0} />
      </Sample>
      <Sample name="ProgressBar">
        <div className={styles.columns}>
          <ProgressBar percent={61} label="Progress of 8f3a" />
          <ProgressBar percent={100} label="Progress of 91c0" tone="completed" />
          <ProgressBar percent={null} label="Progress of 77aa" />
        </div>
      </Sample>
      <Sample name="Sparkline">
        <Sparkline values={history} label="Done per minute: 41 now" />
        <Sparkline values={history} label="Failures: 2 now" tone="failed" />
        <Sparkline values={[0, 0, 0, 0]} label="Nothing yet" />
        <Sparkline values={[3, 5, null, null, 4, 9]} label="With a gap" />
      </Sample>
      <Sample name="Stat">
        <StatRow>
          <Stat label="Running" value="4" href="/jobs?status=running" detail="of 7 slots" />
          <Stat label="Waiting" value="1,284" href="/jobs?status=approved" />
          <Stat label="Failed, last hour" value="12" tone="failed" href="/failures" />
          <Stat label="p95 wait" value="2.1" unit="s" />
          <Stat label="Done" value="41" unit="/min" detail="60 at most" />
        </StatRow>
      </Sample>
      <Sample name="Notice">
        <div className={styles.wide}>
          <div className={styles.columns}>
            <Notice
              kind="error"
              title="Lane maintenance waits for 41 min"
              action={<Button size="sm">Show</Button>}
            >
              The limit is 15 min. One slot is open, and its job runs for 52 min.
            </Notice>
            <Notice kind="warning" title="Worker gpu-2 is silent for 95 s" onClose={() => {}} />
            <Notice kind="info">Read only: your role is viewer.</Notice>
            <Notice kind="success" title="25 jobs queued again" />
          </div>
        </div>
      </Sample>
      <Sample name="Card, KeyValue, Skeleton, EmptyState">
        <div className={styles.columns}>
          <Card title="Details" subtitle="As submitted" actions={<Button size="sm">Edit</Button>}>
            <KeyValue
              items={[
                { name: "Lane", value: "interactive" },
                { name: "Priority", value: "10" },
                { name: "Unique key", value: <code>page-7f0e9c1b2a3d4e5f6a7b8c9d0e1f</code> },
              ]}
            />
          </Card>
          <Card title="Loading">
            <SkeletonLines count={4} />
          </Card>
          <Card flush>
            <EmptyState
              icon="calendar"
              title="No schedules yet"
              action={<Button variant="primary">Add a schedule</Button>}
            >
              A schedule submits a job at fixed times, such as every night at 02:30.
            </EmptyState>
          </Card>
        </div>
        <div className={styles.wide}>
          <SkeletonRows rows={3} />
        </div>
      </Sample>
    </Section>
  );
}
