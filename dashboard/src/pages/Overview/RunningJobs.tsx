import { useState } from "react";
import { type components, useCan } from "../../api";
import {
  Button,
  Card,
  Cell,
  EmptyState,
  HeaderCell,
  LinkText,
  Row,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { count, shortId } from "../../format";
import { href, jobPath, lanePath } from "../../shell/url";
import { Elapsed } from "../../time";
import { CancelDialog } from "../Job/CancelDialog";
import { JobProgress } from "./JobProgress";
import styles from "./Overview.module.css";

type ActiveJob = components["schemas"]["ActiveJobOut"];

const MOST_SHOWN = 15;

/** The running jobs, the longest first. */
export function RunningJobs({ jobs, isMore }: { jobs: ActiveJob[]; isMore: boolean }) {
  const [cancelling, setCancelling] = useState<ActiveJob | null>(null);
  const isCanceller = useCancels();
  const shown = jobs
    .toSorted((a, b) => a.claimed_at.localeCompare(b.claimed_at))
    .slice(0, MOST_SHOWN);
  const all = href("/jobs", { status: "running" });
  return (
    <Card
      flush
      title="Running now"
      actions={
        <LinkText href={all}>
          {jobs.length > shown.length ? `All ${count(jobs.length, isMore)}` : count(jobs.length)}
        </LinkText>
      }
    >
      {jobs.length === 0 ? (
        <EmptyState icon="running" title="No job is running">
          Jobs appear here when a worker claims them.
        </EmptyState>
      ) : (
        <Table label="Running jobs" bare>
          <TableHead>
            <HeaderCell>Job</HeaderCell>
            <HeaderCell>Lane</HeaderCell>
            <HeaderCell>Worker</HeaderCell>
            <HeaderCell>Progress</HeaderCell>
            <HeaderCell numeric>Running for</HeaderCell>
            <HeaderCell numeric>Attempt</HeaderCell>
            {isCanceller && <HeaderCell hidden>Actions</HeaderCell>}
          </TableHead>
          <TableBody>
            {shown.map((job) => (
              <RunningRow
                key={`${job.id} ${job.attempt}`}
                job={job}
                onCancel={isCanceller ? () => setCancelling(job) : null}
              />
            ))}
          </TableBody>
        </Table>
      )}
      {cancelling && (
        <CancelDialog
          job={{ ...cancelling, isRunning: true }}
          onClose={() => setCancelling(null)}
        />
      )}
    </Card>
  );
}

/** Whether this person may cancel some running jobs. */
export function useCancels(): boolean {
  const isManager = useCan("workers:manage");
  return useCan("jobs:cancel") || isManager;
}

function RunningRow({ job, onCancel }: { job: ActiveJob; onCancel: (() => void) | null }) {
  const worker = job.worker ?? job.claimed_by;
  return (
    <Row>
      <Cell rowHeader>
        <LinkText href={jobPath(job.id)}>
          {job.job_type} <span className={styles.id}>{shortId(job.id)}</span>
        </LinkText>
      </Cell>
      <Cell label="Lane">
        <LinkText href={lanePath(job.lane)} quiet>
          {job.lane}
        </LinkText>
      </Cell>
      <Cell label="Worker">
        <LinkText href={href("/jobs", { status: "running", worker })} quiet>
          {worker}
        </LinkText>
      </Cell>
      <Cell label="Progress" wide className={styles.progressCell}>
        <JobProgress job={job} />
      </Cell>
      <Cell label="Running for" numeric>
        <Elapsed since={job.claimed_at} />
      </Cell>
      <Cell label="Attempt" numeric>
        {job.attempt}
      </Cell>
      {onCancel && (
        <Cell control>
          <Button
            size="sm"
            variant="quiet"
            isDisabled={job.cancel_requested_at !== null}
            aria-label={`Cancel ${job.job_type} ${shortId(job.id)}`}
            onPress={onCancel}
          >
            {job.cancel_requested_at === null ? "Cancel" : "Cancelling"}
          </Button>
        </Cell>
      )}
    </Row>
  );
}
