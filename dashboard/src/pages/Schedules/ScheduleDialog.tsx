import { type FormEvent, useState } from "react";
import { type components, messageOf, Problem, parseJson, useAction, writeJson } from "../../api";
import {
  Button,
  Dialog,
  DialogActions,
  Notice,
  Select,
  TextArea,
  TextField,
} from "../../components";
import { JobTypeField } from "../Jobs/JobTypeField";
import { useJobTypes } from "../Jobs/useJobTypes";
import styles from "./Schedules.module.css";

type Schedule = components["schemas"]["ScheduleOut"];
type Missed = Schedule["missed"];

const MISSED: { id: Missed; label: string }[] = [
  { id: "coalesce", label: "Run once for all missed slots" },
  { id: "skip", label: "Skip missed slots" },
  { id: "catch_up", label: "Run every missed slot" },
];

/** Create a schedule, or change one. */
export function ScheduleDialog({
  schedule,
  onClose,
}: {
  schedule?: Schedule;
  onClose: () => void;
}) {
  const [name, setName] = useState(schedule?.name ?? "");
  const [jobType, setJobType] = useState(schedule?.job_type ?? "");
  const { types } = useJobTypes();
  const [cron, setCron] = useState(schedule?.cron ?? "");
  const [timezone, setTimezone] = useState(schedule?.timezone ?? "UTC");
  const [missed, setMissed] = useState<Missed>(schedule?.missed ?? "coalesce");
  const [payload, setPayload] = useState(writeJson(schedule?.payload ?? {}, 2));
  const [broken, setBroken] = useState<string | null>(null);
  const create = useAction("post", "/admin/schedules", {
    showsError: true,
    done: "Schedule created",
  });
  const change = useAction("patch", "/admin/schedules/{name}", {
    showsError: true,
    done: "Schedule changed",
  });
  const action = schedule ? change : create;
  const errorOf = (field: string) =>
    action.error instanceof Problem
      ? action.error.fields.find((each) => each.field === field)?.rule
      : undefined;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const value = readPayload(payload);
    setBroken(typeof value === "string" ? value : null);
    if (typeof value === "string") return;
    const common = { job_type: jobType, cron, timezone, missed, payload: value };
    const done = schedule
      ? await change.run({ params: { path: { name: schedule.name } }, body: common })
      : await create.run({ body: { ...NEW, ...common, name } });
    if (done) onClose();
  };
  return (
    <Dialog
      title={schedule ? `Edit ${schedule.name}` : "New schedule"}
      isOpen
      keepsInput
      onClose={onClose}
    >
      <form className={styles.form} onSubmit={submit}>
        {!schedule && (
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            isRequired
            error={errorOf("name")}
          />
        )}
        <JobTypeField
          types={types}
          value={jobType}
          onChange={setJobType}
          error={errorOf("job_type")}
        />
        <TextField
          label="Cron expression"
          hint="Five fields, six with seconds, or @daily"
          value={cron}
          onChange={setCron}
          isRequired
          error={errorOf("cron")}
        />
        <TextField
          label="Time zone"
          value={timezone}
          onChange={setTimezone}
          isRequired
          error={errorOf("timezone")}
        />
        <Select
          label="Missed slots"
          options={MISSED}
          value={missed}
          onChange={(id) => setMissed(id as Missed)}
        />
        <TextArea
          label="Payload"
          value={payload}
          onChange={setPayload}
          mono
          error={broken ?? errorOf("payload")}
        />
        {action.error && <Notice kind="error" title={messageOf(action.error)} live />}
        <DialogActions>
          <Button onPress={onClose}>Discard</Button>
          <Button
            type="submit"
            variant="primary"
            isPending={action.isPending}
            isDisabled={[name, jobType, cron, timezone].some((text) => text.trim() === "")}
          >
            {schedule ? "Save" : "Create"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

const NEW = { catch_up: 10, workspace: "default", enabled: true };

/** The payload, or what is wrong with it. */
function readPayload(text: string): Record<string, unknown> | string {
  try {
    const value = parseJson(text.trim() || "{}");
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : "must be an object: arguments by name";
  } catch (error) {
    return `is not JSON: ${messageOf(error)}`;
  }
}
