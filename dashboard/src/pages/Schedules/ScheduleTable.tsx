import { useState } from "react";
import { type components, useAction } from "../../api";
import {
  Badge,
  Button,
  Cell,
  ConfirmDialog,
  cx,
  HeaderCell,
  LinkText,
  Menu,
  Notice,
  Row,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { href } from "../../shell/url";
import { Time } from "../../time";
import { Outcomes } from "./Outcomes";
import { ScheduleDialog } from "./ScheduleDialog";
import styles from "./Schedules.module.css";

type Schedule = components["schemas"]["ScheduleOut"];

type Props = { schedules: Schedule[]; canManage: boolean };

/** One line per schedule: when it fires in plain words, what it submits, how the last slots went. */
export function ScheduleTable({ schedules, canManage }: Props) {
  return (
    <Table label="Schedules">
      <TableHead>
        <HeaderCell>Schedule</HeaderCell>
        <HeaderCell>Submits</HeaderCell>
        <HeaderCell>Next</HeaderCell>
        <HeaderCell>Last runs</HeaderCell>
        {canManage && <HeaderCell hidden>Actions</HeaderCell>}
      </TableHead>
      <TableBody>
        {schedules.map((schedule) => (
          <ScheduleRow key={schedule.name} schedule={schedule} canManage={canManage} />
        ))}
      </TableBody>
    </Table>
  );
}

function ScheduleRow({ schedule, canManage }: { schedule: Schedule; canManage: boolean }) {
  return (
    <Row className={styles.schedule}>
      <Cell rowHeader>
        <div className={styles.entry}>
          <span className={styles.name}>{schedule.name}</span>
          <span className={styles.detail}>{schedule.words}</span>
          {schedule.error !== null && (
            <Notice kind="error" title="The schedule does not run">
              {schedule.error}
            </Notice>
          )}
        </div>
      </Cell>
      <Cell label="Submits" wide>
        <div className={styles.entry}>
          <LinkText href={href("/jobs", { job_type: schedule.job_type })}>
            {schedule.job_type}
          </LinkText>
          <span className={styles.detail} title={`Missed slots: ${missed(schedule)}`}>
            <code>{schedule.cron}</code>
            <span className={styles.extra}> · missed: {missed(schedule)}</span>
          </span>
        </div>
      </Cell>
      <Cell label="Next" wide>
        <NextFires schedule={schedule} />
      </Cell>
      <Cell label="Last runs" wide>
        <Outcomes slots={schedule.recent} />
      </Cell>
      {canManage && (
        <Cell control>
          <span className={styles.actions}>
            <ScheduleActions schedule={schedule} />
          </span>
        </Cell>
      )}
    </Row>
  );
}

function missed(schedule: Schedule): string {
  if (schedule.missed === "skip") return "skipped";
  return schedule.missed === "coalesce"
    ? "one run for all"
    : `up to ${schedule.catch_up} caught up`;
}

function NextFires({ schedule }: { schedule: Schedule }) {
  if (!schedule.enabled) {
    return (
      <Badge tone="warning" icon="pause">
        Paused
      </Badge>
    );
  }
  const [next, ...later] = schedule.next_fires.slice(0, 3);
  if (!next) return <>never again</>;
  return (
    <div className={styles.entry}>
      <span>
        {inZone(next.at, schedule.timezone, "short")}{" "}
        <span className={styles.detail}>
          <Time at={next.at} />
          {next.note && ` · ${next.note}`}
        </span>
      </span>
      {later.length > 0 && (
        <span className={cx(styles.detail, styles.extra)}>
          then {later.map((fire) => laterWords(fire, schedule.timezone)).join(", ")}
        </span>
      )}
    </div>
  );
}

function laterWords(fire: Schedule["next_fires"][number], timeZone: string): string {
  const at = inZone(fire.at, timeZone).replace(",", "");
  return fire.note ? `${at} (${fire.note})` : at;
}

/** `Tue 17 Nov, 02:30`, in the schedule's own zone, with its name if wanted. */
function inZone(at: string, timeZone: string, timeZoneName?: "short"): string {
  try {
    return new Intl.DateTimeFormat("en-GB", {
      weekday: "short",
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
      timeZone,
      ...(timeZoneName && { timeZoneName }),
    }).format(new Date(at));
  } catch {
    return at; // a zone that this browser does not know
  }
}

function ScheduleActions({ schedule }: { schedule: Schedule }) {
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(null);
  const close = () => setDialog(null);
  const named = { params: { path: { name: schedule.name } } };
  const change = useAction("patch", "/admin/schedules/{name}");
  const run = useAction("post", "/admin/schedules/{name}/run", {
    done: (made) => made.note ?? `${made.job_type} submitted`,
  });
  const remove = useAction("delete", "/admin/schedules/{name}", {
    done: `${schedule.name} deleted`,
  });
  return (
    <>
      <Button
        size="sm"
        isPending={run.isPending}
        onPress={() => void run.run({ ...named, body: { check: false } })}
      >
        Run now
      </Button>
      <Button
        size="sm"
        isPending={change.isPending}
        onPress={() => void change.run({ ...named, body: { enabled: !schedule.enabled } })}
      >
        {schedule.enabled ? "Pause" : "Resume"}
      </Button>
      <Menu
        label={`More actions for ${schedule.name}`}
        items={[
          { id: "edit", label: "Edit", onAction: () => setDialog("edit") },
          { id: "delete", label: "Delete", danger: true, onAction: () => setDialog("delete") },
        ]}
      />
      {dialog === "edit" && <ScheduleDialog schedule={schedule} onClose={close} />}
      <ConfirmDialog
        title={`Delete ${schedule.name}?`}
        isOpen={dialog === "delete"}
        onClose={close}
        danger
        confirmLabel="Delete"
        isPending={remove.isPending}
        onConfirm={() => remove.confirm(named)}
      >
        Its slots are deleted too. The jobs that it submitted stay.
      </ConfirmDialog>
    </>
  );
}
