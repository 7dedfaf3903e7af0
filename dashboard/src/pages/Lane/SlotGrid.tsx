import { useState } from "react";
import { Link } from "wouter";
import type { components } from "../../api";
import { Card, EmptyState, IconButton, LinkText, Skeleton } from "../../components";
import { count, plural, shortId } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed } from "../../time";
import { CancelDialog } from "../Job/CancelDialog";
import { JobProgress } from "../Overview/JobProgress";
import { useCancels } from "../Overview/RunningJobs";
import styles from "./Lane.module.css";

type Lane = components["schemas"]["LaneDetailOut"];
type ActiveJob = components["schemas"]["ActiveJobOut"];

const MOST_CELLS = 60;

/** One cell for every slot: the job in it, or free. */
export function SlotGrid({ lane, active }: { lane: Lane; active: ActiveJob[] | undefined }) {
  const [cancelling, setCancelling] = useState<ActiveJob | null>(null);
  const isCanceller = useCancels();
  const jobs = (active ?? []).filter((job) => job.lane === lane.name);
  const shown = jobs.slice(0, MOST_CELLS);
  const free = lane.max_slots === null ? 0 : Math.max(0, lane.max_slots - jobs.length);
  const freeCells = Math.min(free, MOST_CELLS - shown.length);
  const hidden = jobs.length - shown.length;
  return (
    <Card title="Slots" subtitle={slotWords(lane, jobs.length)}>
      {active === undefined ? (
        <Skeleton height={86} />
      ) : shown.length + freeCells === 0 ? (
        <EmptyState icon="running" title={lane.max_slots === 0 ? "No slots" : "No job is running"}>
          {lane.max_slots === 0 ? "Give the lane a slot to start jobs." : "Every job gets a slot."}
        </EmptyState>
      ) : (
        <ul className={styles.grid}>
          {shown.map((job) => (
            <Slot
              key={`${job.id} ${job.attempt}`}
              job={job}
              onCancel={isCanceller ? () => setCancelling(job) : null}
            />
          ))}
          {Array.from({ length: freeCells }, (_, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: free slots are alike
            <li key={`free ${at}`} className={styles.free}>
              Free
            </li>
          ))}
        </ul>
      )}
      {(hidden > 0 || free > freeCells) && (
        <p className={styles.more}>
          {hidden > 0 && (
            <LinkText href={href("/jobs", { status: "running", lane: lane.name })}>
              {`${count(hidden)} more running`}
            </LinkText>
          )}
          {free > freeCells && ` ${count(free - freeCells)} more free`}
        </p>
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

function slotWords(lane: Lane, running: number): string {
  if (lane.max_slots === null) return `${plural(running, "running job")}, no bound`;
  const over = running - lane.max_slots;
  const words = `${running} of ${plural(lane.max_slots, "slot")} in use`;
  return over > 0 ? `${words}: ${over} above the bound will finish` : words;
}

function Slot({ job, onCancel }: { job: ActiveJob; onCancel: (() => void) | null }) {
  const worker = job.worker ?? job.claimed_by;
  return (
    <li className={styles.slot}>
      <div className={styles.slotHead}>
        <Link href={jobPath(job.id)} className={styles.slotJob}>
          {job.job_type} <span className={styles.id}>{shortId(job.id)}</span>
        </Link>
        <Elapsed since={job.claimed_at} />
        {onCancel && (
          <IconButton
            size="sm"
            icon="cross"
            label={`Cancel ${job.job_type} ${shortId(job.id)}`}
            isDisabled={job.cancel_requested_at !== null}
            onPress={onCancel}
          />
        )}
      </div>
      <JobProgress job={job} />
      <div className={styles.slotFoot}>
        <LinkText href={href("/jobs", { status: "running", worker })} quiet>
          {worker}
        </LinkText>
        <span>attempt {job.attempt}</span>
      </div>
    </li>
  );
}
