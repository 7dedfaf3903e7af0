import { useState } from "react";
import { type components, useAction } from "../../api";
import { Badge, Button, Card, ConfirmDialog, LinkText, Menu, Notice } from "../../components";
import { href } from "../../shell/url";
import { Time } from "../../time";
import { Outcomes } from "./Outcomes";
import { ScheduleDialog } from "./ScheduleDialog";
import styles from "./Schedules.module.css";

type Schedule = components["schemas"]["ScheduleOut"];

export function ScheduleCard({ schedule, canManage }: { schedule: Schedule; canManage: boolean }) {
  return (
    <Card
      title={schedule.name}
      subtitle={schedule.words}
      actions={canManage && <ScheduleActions schedule={schedule} />}
    >
      <div className={styles.facts}>
        <div>
          <h3 className={styles.heading}>Submits</h3>
          <LinkText href={href("/jobs", { job_type: schedule.job_type })}>
            {schedule.job_type}
          </LinkText>
          <div className={styles.detail}>
            <code>{schedule.cron}</code> · {schedule.timezone} · missed slots: {missed(schedule)}
          </div>
        </div>
        <div>
          <h3 className={styles.heading}>Next</h3>
          <NextFires schedule={schedule} />
        </div>
        <div>
          <h3 className={styles.heading}>Last ten</h3>
          <Outcomes slots={schedule.recent} />
        </div>
      </div>
      {schedule.error !== null && (
        <Notice kind="error" title="The schedule does not run">
          {schedule.error}
        </Notice>
      )}
    </Card>
  );
}

function missed(schedule: Schedule): string {
  if (schedule.missed === "skip") return "skipped";
  return schedule.missed === "coalesce" ? "one for all" : `up to ${schedule.catch_up} caught up`;
}

function NextFires({ schedule }: { schedule: Schedule }) {
  if (!schedule.enabled) return <Badge tone="warning">paused</Badge>;
  if (schedule.next_fires.length === 0) return <>never again</>;
  return (
    <ol className={styles.fires}>
      {schedule.next_fires.slice(0, 3).map((fire) => (
        <li key={fire.at}>
          <span className={styles.at}>{inZone(fire.at, schedule.timezone)}</span>{" "}
          <span className={styles.detail}>
            <Time at={fire.at} />
            {fire.note && ` · ${fire.note}`}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** `Tue 17 Nov, 02:30`, in the schedule's own zone. */
function inZone(at: string, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat("en-GB", {
      weekday: "short",
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
      timeZone,
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
