import { type ReactNode, useState } from "react";
import { useParams } from "wouter";
import { type components, Problem, useApi, useMe, useTopics } from "../../api";
import {
  CopyButton,
  EmptyState,
  LinkText,
  LoadingCards,
  PageHeader,
  SkeletonCard,
  StatusBadge,
  TitleWithId,
} from "../../components";
import { between, duration } from "../../format";
import { ErrorNotice, type Read } from "../../shell/ErrorNotice";
import { flowPath, href } from "../../shell/url";
import { Actions } from "./Actions";
import { Attempts } from "./Attempts";
import { hasEnded, seesPrivate } from "./actionRules";
import { Data } from "./Data";
import { Edges } from "./Edges";
import { Facts } from "./Facts";
import styles from "./Job.module.css";
import { Now } from "./Now";
import { Steps } from "./Steps";
import { timeline } from "./stages";
import { Timeline } from "./Timeline";
import { useJobFlow } from "./useJobFlow";
import { Waits } from "./Waits";

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** One job: why it waits, how far it is or how it ended; then its life and its values. */
export default function Job() {
  const { id = "" } = useParams<{ id: string }>();
  return <JobPage key={id} id={id} />;
}

function JobPage({ id }: { id: string }) {
  const me = useMe();
  const [isDeleting, setDeleting] = useState(false);
  const isId = ID.test(id);
  const found = useApi(
    "/jobs/{job_id}",
    { path: { job_id: id } },
    { enabled: isId && !isDeleting },
  );
  const isMissing = !isId || (found.error instanceof Problem && found.error.status === 404);
  const job = found.data;
  // The stream refuses the topic of a job that does not exist.
  useTopics(job && !isMissing ? [`job:${id}`] : []);
  if (isMissing) return <NotFound id={id} wasDeleted={job !== undefined} />;
  if (!job) return <Loading id={id} read={found} />;
  const isPrivateShown = seesPrivate(me, job);
  const total = between(job.created_at, job.finished_at);
  return (
    <>
      <PageHeader
        breadcrumb={<LinkText href="/jobs">Jobs</LinkText>}
        title={<TitleWithId name={job.job_type} id={job.id} />}
        subtitle={job.flow !== null && <InFlow job={job} />}
        meta={
          <>
            <CopyButton text={job.id} label="Copy id" />
            <StatusBadge status={job.status} label={job.label} />
          </>
        }
        actions={<Actions job={job} onDeleting={setDeleting} />}
      />
      {hasEnded(job.status) && !isDeleting && <DeletionCheck id={id} />}
      <div className={styles.page}>
        <div className={styles.now}>
          <Now job={job} isPrivateShown={isPrivateShown} />
        </div>
        <div className={styles.side}>
          <Timeline
            stages={timeline(job, job.attempts)}
            total={total === null ? undefined : `${duration(total)} in all`}
          />
          <Edges job={job} />
          <div className={styles.facts}>
            <Facts job={job} />
          </div>
        </div>
        <div className={styles.main}>
          <Attempts job={job} isPrivateShown={isPrivateShown} />
          <Steps steps={job.steps} />
          <Waits waits={job.waits} />
          <Data job={job} />
        </div>
      </div>
    </>
  );
}

/** The name of a job in its flow. */
function InFlow({ job }: { job: components["schemas"]["JobDetailOut"] }) {
  const flow = useJobFlow(job);
  const name = flow?.jobs.find(({ id }) => id === job.id)?.name;
  return (
    <>
      {name && <strong>{name} </strong>}
      {name ? "in" : "In"} the flow{" "}
      <LinkText href={flowPath(job.flow ?? "")}>{flow?.name ?? "…"}</LinkText>
    </>
  );
}

// The deletion of a job sends it no event.
const DELETION_CHECK_S = 10;

/** Reads an ended job again now and then, until it is gone. */
function DeletionCheck({ id }: { id: string }) {
  useApi("/jobs/{job_id}", { path: { job_id: id } }, { everyS: DELETION_CHECK_S });
  return null;
}

function Header({ title = "Job" }: { title?: ReactNode }) {
  return <PageHeader breadcrumb={<LinkText href="/jobs">Jobs</LinkText>} title={title} />;
}

function Loading({ id, read }: { id: string; read: Read }) {
  return (
    <>
      <Header title={<TitleWithId id={id} />} />
      {read.error === null ? (
        <LoadingCards className={styles.page}>
          <SkeletonCard className={styles.now} lines={4} />
          <div className={styles.side}>
            <SkeletonCard lines={5} />
            <SkeletonCard lines={8} />
          </div>
          <div className={styles.main}>
            <SkeletonCard lines={3} />
            <SkeletonCard lines={5} />
          </div>
        </LoadingCards>
      ) : (
        <ErrorNotice of={read} />
      )}
    </>
  );
}

function NotFound({ id, wasDeleted }: { id: string; wasDeleted: boolean }) {
  if (wasDeleted) {
    return (
      <>
        <Header />
        <EmptyState
          icon="trash"
          title="This job was deleted"
          action={<LinkText href="/jobs">Show all jobs</LinkText>}
        >
          <p>
            <code className={styles.wanted}>{id}</code> was deleted while you looked at it, or you
            may no longer see it.
          </p>
        </EmptyState>
      </>
    );
  }
  return (
    <>
      <Header />
      <EmptyState
        icon="search"
        title="No such job"
        action={<LinkText href={href("/jobs", { q: id })}>Search all jobs for this text</LinkText>}
      >
        <p>
          <code className={styles.wanted}>{id}</code> does not exist, was deleted after its
          retention, or is outside of what you may see.
        </p>
      </EmptyState>
    </>
  );
}
