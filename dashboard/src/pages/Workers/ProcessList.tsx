import type { components } from "../../api";
import { Card, LinkText } from "../../components";
import { bytes } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import { stateOf, TRANSPORTS, type Worker } from "./hosts";
import styles from "./Workers.module.css";

type ActiveJob = components["schemas"]["ActiveJobOut"];

/** All processes in one dense list, as `laneway admin workers` prints them. */
export function ProcessList({ workers, active }: { workers: Worker[]; active: ActiveJob[] }) {
  return (
    <Card flush>
      <ul className={styles.processes}>
        {workers.map((worker) => (
          <li key={worker.id}>
            <span className={styles.process}>
              <LinkText href={href("/jobs", { worker: worker.name })} title="Its recent jobs">
                <b>{worker.name}</b>
              </LinkText>
              <span>
                {worker.host}:{worker.pid}
              </span>
              <span>{stateOf(worker).word}</span>
              <span>{TRANSPORTS[worker.transport]}</span>
              <span>{worker.running} running</span>
              <span>{bytes(worker.memory_bytes)}</span>
              <Time at={worker.seen_at} />
            </span>
            <ul>
              {active
                .filter((job) => job.claimed_by === worker.id)
                .map((job) => (
                  <li key={job.id} className={styles.process}>
                    <LinkText quiet href={jobPath(job.id)}>
                      {job.id}
                    </LinkText>
                    <span>{job.job_type}</span>
                    <span>{job.lane}</span>
                    <Elapsed since={job.claimed_at} />
                    <span>{job.progress?.message ?? ""}</span>
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
    </Card>
  );
}
