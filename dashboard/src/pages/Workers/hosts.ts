import type { components } from "../../api";
import type { IconName } from "../../components";

export type Worker = components["schemas"]["WorkerRowOut"];

/** The workers of one host, silent ones first. */
export type Host = { name: string; workers: Worker[]; silent: number; running: number };

// With more of them, a host that was replaced hides the workers that live.
const MOST_SILENT = 5;

/** The live workers, and the first few silent ones. */
export function foldSilent(workers: Worker[]): Worker[] {
  const silent = workers.filter(({ state }) => state !== "live");
  if (silent.length <= MOST_SILENT + 1) return workers;
  const hidden = new Set(silent.slice(MOST_SILENT));
  return workers.filter((worker) => !hidden.has(worker));
}

/** Group workers by host; hosts with silent workers come first. */
export function byHost(live: Worker[], silent: Worker[]): Host[] {
  const hosts = new Map<string, Host>();
  for (const worker of [...silent, ...live]) {
    const host = hosts.get(worker.host) ?? {
      name: worker.host,
      workers: [],
      silent: 0,
      running: 0,
    };
    hosts.set(worker.host, host);
    host.workers.push(worker);
    host.running += worker.running;
    if (worker.state !== "live") host.silent += 1;
  }
  return [...hosts.values()].sort(
    (one, other) => other.silent - one.silent || one.name.localeCompare(other.name),
  );
}

/** The names of workers, in words; of many, the first few. */
export function nameWords(workers: readonly Pick<Worker, "name">[]): string {
  const names = workers.slice(0, MOST_SILENT).map(({ name }) => name);
  const others = workers.length - names.length;
  return `${names.join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
}

/** How a worker reaches the database, in words. */
export const TRANSPORTS: Record<Worker["transport"], string> = {
  in_process: "in an application",
  database: "database",
  grpc: "gRPC",
};

/** Whether a process runs jobs itself: a server alone does not, and cannot be drained. */
export function runsJobs(worker: Pick<Worker, "job_types">): boolean {
  return worker.job_types.length > 0;
}

/** The state of a worker for people. */
export function stateOf(worker: Worker): {
  word: string;
  tone: "completed" | "warning" | "failed" | "neutral";
  icon: IconName;
} {
  if (worker.state === "dead") return { word: "Silent", tone: "failed", icon: "warning" };
  if (worker.state === "stopped") return { word: "Stopped", tone: "neutral", icon: "stop" };
  if (worker.is_stopping) return { word: "Stopping", tone: "neutral", icon: "hourglass" };
  if (worker.drain_requested_at !== null) return { word: "Drained", tone: "warning", icon: "stop" };
  return { word: "Live", tone: "completed", icon: "check" };
}
