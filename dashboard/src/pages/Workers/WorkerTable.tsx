import { useState } from "react";
import { type components, useAction, useCan } from "../../api";
import {
  Badge,
  Button,
  Cell,
  ConfirmDialog,
  HeaderCell,
  LinkText,
  Row,
  SlotBoxes,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { bytes, plural, shortId } from "../../format";
import { href, jobPath, lanePath } from "../../shell/url";
import { Time } from "../../time";
import { foldSilent, type Host, runsJobs, stateOf, TRANSPORTS, type Worker } from "./hosts";
import styles from "./Workers.module.css";

type ActiveJob = components["schemas"]["ActiveJobOut"];

/** The processes of one host. */
export function WorkerTable({ host, active }: { host: Host; active: ActiveJob[] }) {
  const canManage = useCan("workers:manage");
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? host.workers : foldSilent(host.workers);
  const hidden = host.workers.length - shown.length;
  return (
    <>
      <Table label={`Workers on ${host.name}`} bare>
        <TableHead>
          <HeaderCell>Worker</HeaderCell>
          <HeaderCell>State</HeaderCell>
          <HeaderCell>Capacity</HeaderCell>
          <HeaderCell>Running</HeaderCell>
          <HeaderCell>Lanes</HeaderCell>
          <HeaderCell>Job types</HeaderCell>
          <HeaderCell numeric secondary>
            Memory
          </HeaderCell>
          <HeaderCell numeric>Last seen</HeaderCell>
          {canManage && <HeaderCell hidden>Actions</HeaderCell>}
        </TableHead>
        <TableBody>
          {shown.map((worker) => (
            <WorkerRow
              key={worker.id}
              worker={worker}
              jobs={active.filter((job) => job.claimed_by === worker.id)}
              canManage={canManage}
            />
          ))}
        </TableBody>
      </Table>
      {hidden > 0 && (
        <div className={styles.foot}>
          <Button size="sm" variant="quiet" onPress={() => setWhole(true)}>
            Show {plural(hidden, "more silent worker")}
          </Button>
        </div>
      )}
    </>
  );
}

function WorkerRow(props: { worker: Worker; jobs: ActiveJob[]; canManage: boolean }) {
  const { worker, jobs, canManage } = props;
  const state = stateOf(worker);
  return (
    <Row brief={worker.state !== "live"}>
      <Cell rowHeader label="Worker">
        <div>
          <LinkText href={href("/jobs", { worker: worker.name })} title="Its recent jobs">
            {worker.name}
          </LinkText>
          <div className={styles.detail}>
            pid {worker.pid} · {TRANSPORTS[worker.transport]}
          </div>
        </div>
      </Cell>
      <Cell label="State" headline>
        <span className={styles.badges}>
          <Badge tone={state.tone} icon={state.icon}>
            {state.word}
          </Badge>
          {worker.is_leader && <Badge icon="bolt">Leader</Badge>}
        </span>
      </Cell>
      <Cell label="Capacity" wide>
        <Room worker={worker} />
      </Cell>
      <Cell label="Running" wide>
        {jobs.length === 0 ? (
          "—"
        ) : (
          <ul className={styles.jobs}>
            {jobs.map((job) => (
              <li key={job.id}>
                <LinkText quiet href={jobPath(job.id)}>
                  {job.job_type} <code>{shortId(job.id)}</code>
                </LinkText>
              </li>
            ))}
          </ul>
        )}
      </Cell>
      <Cell label="Lanes">
        <span className={styles.lanes}>
          {worker.lanes === null
            ? "all"
            : worker.lanes.length === 0
              ? "none"
              : worker.lanes.map((lane) => (
                  <LinkText key={lane} quiet href={lanePath(lane)}>
                    {lane}
                  </LinkText>
                ))}
        </span>
      </Cell>
      <Cell label="Job types" wide>
        <span className={styles.types} title={worker.job_types.join(", ")}>
          {worker.job_types.join(", ") || "none"}
        </span>
      </Cell>
      <Cell label="Memory" numeric secondary>
        {bytes(worker.memory_bytes)}
      </Cell>
      <Cell label="Last seen" numeric headline={worker.state !== "live"}>
        <Time at={worker.seen_at} />
      </Cell>
      {canManage && (
        <Cell control>
          {worker.state === "live" && runsJobs(worker) && <DrainSwitch worker={worker} />}
        </Cell>
      )}
    </Row>
  );
}

/** Used and total capacity by kind; `async` alone needs no name. */
export function Room({ worker }: { worker: Worker }) {
  const kinds = Object.entries(worker.room).filter(([, use]) => use.total > 0);
  if (kinds.length === 0) return <>{worker.running} running</>;
  return (
    <span className={styles.room}>
      {kinds.map(([kind, use]) => (
        <span key={kind} className={styles.kind}>
          <span className={styles.kindName}>{kind}</span>
          <SlotBoxes used={use.used} total={use.total} />
        </span>
      ))}
    </span>
  );
}

function DrainSwitch({ worker }: { worker: Worker }) {
  const [isAsking, setAsking] = useState(false);
  const params = { params: { path: { worker_id: worker.id } } };
  const drain = useAction("post", "/admin/workers/{worker_id}/drain", {
    done: `${worker.name} takes no more jobs`,
  });
  const resume = useAction("post", "/admin/workers/{worker_id}/resume", {
    done: `${worker.name} takes jobs again`,
  });
  if (worker.drain_requested_at !== null) {
    return (
      <Button size="sm" isPending={resume.isPending} onPress={() => void resume.run(params)}>
        Resume
      </Button>
    );
  }
  return (
    <>
      <Button size="sm" onPress={() => setAsking(true)}>
        Drain
      </Button>
      <ConfirmDialog
        title={`Drain ${worker.name}?`}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        confirmLabel="Drain"
        isPending={drain.isPending}
        onConfirm={() => drain.confirm(params)}
      >
        It finishes its {worker.running} running jobs and claims no more until it is resumed.
      </ConfirmDialog>
    </>
  );
}
