import { useState } from "react";
import { type components, Problem, useAction } from "../../api";
import { Button, Dialog, Notice } from "../../components";
import { JobTypeField } from "./JobTypeField";
import { type JobOptions, NO_OPTIONS, readOptions } from "./newJob/jobOptions";
import styles from "./newJob/NewJob.module.css";
import { OptionFields } from "./newJob/OptionFields";
import { PayloadEditor } from "./newJob/PayloadEditor";
import { usePayload } from "./newJob/usePayload";
import { type JobType, useJobTypes } from "./useJobTypes";

type Job = components["schemas"]["JobOut"];
// What is left out has a default.
type NewJob = components["schemas"]["JobRequest"];

export type NewJobDialogProps = {
  /** The values to begin with, such as those of a job to clone. */
  initial?: Partial<
    Pick<Job, "job_type" | "payload" | "priority" | "tags" | "workspace" | "max_retries">
  >;
  isOpen: boolean;
  onClose: () => void;
  onSubmitted?: (job: Job) => void;
};

/** Submit a job: choose its type, fill in its arguments, set options. */
export function NewJobDialog({ isOpen, ...rest }: NewJobDialogProps) {
  return isOpen ? <OpenDialog {...rest} /> : null;
}

function OpenDialog({ initial = {}, onClose, onSubmitted }: Omit<NewJobDialogProps, "isOpen">) {
  const { types, isKnown } = useJobTypes();
  const [jobType, setJobType] = useState(initial.job_type ?? "");
  const type = types.find(({ name }) => name === jobType.trim());
  const payload = usePayload(type?.arguments ?? null, initial.payload);
  const [options, setOptions] = useState(() => optionsOf(initial));
  const [errors, setErrors] = useState<Record<string, string>>({});
  const submit = useAction("post", "/jobs", {
    showsError: true,
    done: (job) =>
      job.duplicate ? "This job exists already: its unique key is in use" : "Job submitted",
  });

  const send = async () => {
    const read = payload.read();
    const given = readOptions(options);
    const found = {
      ...(read && prefixed("payload.", read.errors)),
      ...given.errors,
      ...(jobType.trim() === "" && { job_type: "is required" }),
    };
    setErrors(found);
    if (read === null || Object.keys(found).length > 0) return;
    const body = { job_type: jobType.trim(), payload: read.payload, ...given.request } as NewJob;
    try {
      onSubmitted?.(await submit.confirm({ body }));
      onClose();
    } catch (problem) {
      if (problem instanceof Problem) setErrors(fieldErrors(problem));
    }
  };
  const forget = (name: string) => setErrors(({ [name]: _, ...rest }) => rest);
  return (
    <Dialog
      title={initial.payload === undefined ? "New job" : "New job from a copy"}
      isOpen
      keepsInput
      size="lg"
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Discard</Button>
          <Button variant="primary" isPending={submit.isPending} onPress={send}>
            Submit job
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        {submit.error && (
          <Notice kind="error" live title="The job was not submitted">
            {submit.error.message}
          </Notice>
        )}
        <JobTypeField
          types={types}
          value={jobType}
          onChange={(name) => {
            setJobType(name);
            forget("job_type");
          }}
          hint={typeHint(jobType.trim(), type, isKnown)}
          error={errors.job_type}
        />
        <PayloadEditor
          input={payload}
          errors={ofPayload(errors)}
          onEdit={(name) => forget(`payload.${name}`)}
        />
        <details open={OPTION_NAMES.some((name) => name in errors) || undefined}>
          <summary className={styles.summary}>Options: priority, start, tags, unique key</summary>
          <OptionFields
            options={options}
            onChange={(change) => {
              setOptions({ ...options, ...change });
              for (const name of Object.keys(change)) forget(name);
            }}
            errors={errors}
            priority={type?.priority ?? null}
            maxRetries={type?.max_retries ?? null}
          />
        </details>
      </div>
    </Dialog>
  );
}

function optionsOf(initial: NonNullable<NewJobDialogProps["initial"]>): JobOptions {
  return {
    ...NO_OPTIONS,
    priority: initial.priority === undefined ? "" : String(initial.priority),
    tags: initial.tags?.join(", ") ?? "",
    workspace: initial.workspace ?? "",
    maxRetries: initial.max_retries === undefined ? "" : String(initial.max_retries),
  };
}

function typeHint(name: string, type: JobType | undefined, isKnown: boolean): string | undefined {
  if (name === "" || !isKnown) return undefined;
  if (type === undefined) return "No worker has published this type: the job waits for one.";
  const approval = type.approval === "never" ? "" : ", needs an approval before it runs";
  const worker = type.is_known ? "" : ". No live worker runs it";
  const about = type.arguments?.description;
  const place = `Runs in lane ${type.lane}${approval}${worker}`;
  return typeof about === "string" ? `${about.replace(/\.?$/, ".")} ${place}` : place;
}

const prefixed = (prefix: string, errors: Record<string, string>) =>
  Object.fromEntries(Object.entries(errors).map(([name, rule]) => [prefix + name, rule]));

const OPTION_NAMES = Object.keys(NO_OPTIONS);
// The names of the request's fields, as the form has them.
const FORM_NAMES: Record<string, string> = {
  run_at: "runAt",
  unique_key: "uniqueKey",
  max_retries: "maxRetries",
};

function fieldErrors(problem: Problem): Record<string, string> {
  return Object.fromEntries(
    problem.fields.map(({ field, rule }) => [FORM_NAMES[field] ?? field, rule]),
  );
}

function ofPayload(errors: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(errors).flatMap(([name, rule]) => {
      const [, argument] = /^payload\.?(.*)$/.exec(name) ?? [];
      return argument === undefined ? [] : [[argument, rule]];
    }),
  );
}
