import { type components, useApi } from "../../api";
import {
  Card,
  JsonView,
  LinkText,
  Notice,
  ProgressBar,
  SkeletonLines,
  Stat,
  StatRow,
  Traceback,
} from "../../components";
import { between, duration, plural } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { href } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import { AnalysisSummary } from "../Approvals/AnalysisSummary";
import { hasEnded } from "./actionRules";
import { cancelOf } from "./cancel";
import styles from "./Now.module.css";
import { Estimate, Reasons, ReasonText } from "./Reasons";
import { SendEvent } from "./SendEvent";
import { Wait } from "./Wait";

type Job = components["schemas"]["JobDetailOut"];
type NowProps = { job: Job; isPrivateShown: boolean };

// Places in the queue and leases change without an event of this job.
const WAITING_S = 5;
const RUNNING_S = 10;

/** What the job does now: why it waits, how far it is, or how it ended. */
export function Now({ job, isPrivateShown }: NowProps) {
  if (job.status === "failed") return <Failed job={job} isPrivateShown={isPrivateShown} />;
  if (job.status === "cancelled") return <Cancelled job={job} />;
  if (job.status === "completed") return <Completed job={job} />;
  return job.status === "running" ? <Running job={job} /> : <Waiting job={job} />;
}

function useExplanation(job: Job) {
  return useApi(
    "/jobs/{job_id}/explain",
    { path: { job_id: job.id } },
    {
      enabled: !hasEnded(job.status),
      everyS: job.status === "running" ? RUNNING_S : WAITING_S,
    },
  );
}

function Waiting({ job }: { job: Job }) {
  const explanation = useExplanation(job);
  const found = explanation.data;
  return (
    <Card title="Why it is not running" actions={<SendEvent job={job} />}>
      <div className={styles.body}>
        {job.cancel_requested_at && <CancelRequested job={job} />}
        {found ? (
          <>
            {job.waits_for ? <Wait wait={job.waits_for} /> : <Estimate explanation={found} />}
            {job.status === "awaiting_approval" && <AnalysisSummary analysis={job.analysis} />}
            <Reasons explanation={found} />
            <LastFailure attempt={job.attempts.at(-1)} />
          </>
        ) : explanation.isError ? (
          <ErrorNotice of={explanation} />
        ) : (
          <SkeletonLines count={3} />
        )}
      </div>
    </Card>
  );
}

/** The error for which a job waits to be retried. */
function LastFailure({ attempt }: { attempt: Job["attempts"][number] | undefined }) {
  if (!attempt?.error) return null;
  return (
    <Notice kind="warning" title={`Attempt ${attempt.attempt} failed: ${attempt.error.type}`}>
      <p className={styles.errorText}>{attempt.error.message}</p>
    </Notice>
  );
}

function Running({ job }: { job: Job }) {
  const explanation = useExplanation(job);
  const { progress } = job;
  const since = job.started_at ?? job.claimed_at;
  const units = progress?.total != null ? `${progress.done ?? 0} of ${progress.total}` : null;
  const isSaid = units !== null && (progress?.message?.includes(units) ?? false);
  const parts = [progress?.stage, progress?.message, !isSaid && units].filter(Boolean);
  return (
    <Card title="Running now">
      <div className={styles.body}>
        {job.cancel_requested_at && <CancelRequested job={job} />}
        <ProgressBar percent={progress?.percent ?? null} label="Progress of the job" wide />
        <p className={styles.message}>
          {parts.length > 0 ? parts.join(" · ") : "The handler reports no progress."}
        </p>
        {explanation.data && (
          <Reasons explanation={explanation.data} without={["running", "cancel_requested"]} />
        )}
        <StatRow>
          <Stat
            label="Elapsed"
            value={since ? <Elapsed since={since} /> : "—"}
            detail={
              explanation.data?.runs_for_s != null
                ? `usually ${duration(explanation.data.runs_for_s)}`
                : undefined
            }
          />
          <Stat
            label="Worker"
            value={<span className={styles.name}>{job.worker ?? "—"}</span>}
            {...(job.worker && { href: "/workers" })}
          />
          <Stat
            label="Lease ends"
            value={<Time at={job.lease_until} />}
            detail="its worker renews it"
          />
          <Stat
            label="Last progress"
            value={<Time at={job.last_progress_at} />}
            detail={`attempt ${job.attempt}`}
          />
        </StatRow>
      </div>
    </Card>
  );
}

function CancelRequested({ job }: { job: Job }) {
  const reason = job.cancel_reason ? ` Reason: “${job.cancel_reason}”.` : "";
  return (
    <Notice kind="warning">
      Cancel requested <Time at={job.cancel_requested_at} />
      {job.cancelled_by && ` by ${job.cancelled_by}`}, waiting for the handler's next check.
      {reason}
    </Notice>
  );
}

function Failed({ job, isPrivateShown }: NowProps) {
  const { error } = job;
  return (
    <Card
      title="Why it failed"
      subtitle={
        <>
          {plural(job.attempt, "attempt")} · <Time at={job.finished_at} />
        </>
      }
    >
      <div className={styles.body}>
        <Notice kind="error" title={error?.type ?? "Failed"}>
          <p className={styles.errorText}>{error?.message || "It has no message."}</p>
        </Notice>
        {error?.traceback && <Traceback text={error.traceback} />}
        {!error?.traceback && !isPrivateShown && (
          <p className={styles.note}>
            Its traceback is hidden: it needs the permission <code>jobs:debug</code>.
          </p>
        )}
        <p className={styles.note}>
          <LinkText href={href("/jobs", { status: "failed", job_type: job.job_type })}>
            Failed jobs of this type
          </LinkText>
        </p>
      </div>
    </Card>
  );
}

const CANCEL_TITLES = {
  cancelled: "Why it was cancelled",
  rejected: "Why it was rejected",
  expired: "Its approval expired",
  after: "Why it did not run",
};
const CANCELLERS = {
  expired: "No approver decided in time",
  after: "A job that it comes after did not complete",
};

function Cancelled({ job }: { job: Job }) {
  const { kind, by, reason } = cancelOf(job);
  const isDecided = kind === "cancelled" || kind === "rejected";
  const subtitle = (
    <>
      {isDecided ? `By ${by ?? "its handler"}` : CANCELLERS[kind]} · <Time at={job.finished_at} />
    </>
  );
  return (
    <Card title={CANCEL_TITLES[kind]} subtitle={subtitle}>
      <div className={styles.body}>
        {kind === "after" && reason !== null ? (
          <p>
            <ReasonText reason={{ code: kind, message: reason }} lane={job.lane} />
          </p>
        ) : reason ? (
          <blockquote className={styles.quote}>{reason}</blockquote>
        ) : (
          <p className={styles.note}>
            {kind === "expired" ? "Retry it to ask for an approval again." : "No reason was given."}
          </p>
        )}
        {kind === "after" && (
          <p className={styles.note}>
            Retry that job first: a retry of this one waits until that one completes.
          </p>
        )}
        {job.error && (
          <p className={styles.errorText}>
            <strong>{job.error.type}</strong>: {job.error.message}
          </p>
        )}
        {job.result !== null && <JsonView label="Result value" value={job.result} />}
      </div>
    </Card>
  );
}

function Completed({ job }: { job: Job }) {
  const took = between(job.started_at, job.finished_at);
  const subtitle = (
    <>
      Completed <Time at={job.finished_at} />
      {took !== null && ` in ${duration(took)}`}
      {job.worker && ` on ${job.worker}`}
    </>
  );
  return (
    <Card title="Result" subtitle={subtitle}>
      {job.result === null ? (
        <p className={styles.note}>The handler returned nothing.</p>
      ) : (
        <JsonView label="Result value" value={job.result} />
      )}
    </Card>
  );
}
