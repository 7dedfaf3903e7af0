import { useApi, useTopics } from "../../api";
import { Card, EmptyState, Notice, PageHeader, SkeletonRows } from "../../components";
import { plural } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { useUrlValue } from "../../shell/url";
import { byHost, nameWords } from "./hosts";
import { LayoutSwitch } from "./LayoutSwitch";
import { ProcessList } from "./ProcessList";
import styles from "./Workers.module.css";
import { WorkerTable } from "./WorkerTable";

// Heartbeats send no event.
const HEARTBEAT_S = 10;

/** Hosts, their worker processes and what these run. */
export default function Workers() {
  const status = useApi("/admin/workers/status", undefined, { everyS: HEARTBEAT_S });
  const [layout] = useUrlValue("layout");
  useTopics(["lanes"]);
  const live = status.data?.workers ?? [];
  const silent = status.data?.silent ?? [];
  const hosts = byHost(live, silent);
  return (
    <>
      <PageHeader
        title="Workers"
        subtitle={
          status.data &&
          `${plural(live.length, "live process", "live processes")} on ${plural(hosts.length, "host")}${silent.length > 0 ? `, ${silent.length} silent` : ""}`
        }
        actions={<LayoutSwitch />}
      />
      <div className={styles.page}>
        <ErrorNotice of={status} />
        {silent.length > 0 && (
          <Notice
            kind="warning"
            title={`${plural(silent.length, "silent worker")}: ${nameWords(silent)}`}
          >
            No heartbeat for 45 seconds, and no clean stop. Other workers take over the jobs when
            the leases lapse.
          </Notice>
        )}
        {status.isPending && <SkeletonRows rows={4} />}
        {status.data && hosts.length === 0 && (
          <EmptyState icon="worker" title="No worker runs">
            Jobs wait until one starts: <code>laneway worker app:lw</code>
          </EmptyState>
        )}
        {layout === "processes" && status.data ? (
          <ProcessList workers={[...live, ...silent]} active={status.data.active} />
        ) : (
          hosts.map((host) => (
            <Card
              key={host.name}
              flush
              title={host.name}
              subtitle={`${plural(host.workers.length, "process", "processes")}, ${plural(host.running, "running job")}`}
            >
              <WorkerTable host={host} active={status.data?.active ?? []} />
            </Card>
          ))
        )}
      </div>
    </>
  );
}
