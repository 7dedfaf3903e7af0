import type { IconName } from "./Icon";

/** The look of a job state: which colour tokens and which icon. */
export type StatusTone =
  | "queued"
  | "analysing"
  | "awaiting-approval"
  | "waiting"
  | "running"
  | "completed"
  | "failed"
  | "cancelled";

export type Tone = StatusTone | "warning" | "info" | "neutral" | "accent";

const looks: Record<string, { tone: StatusTone; icon: IconName }> = {
  pending: { tone: "analysing", icon: "analysing" },
  awaiting_approval: { tone: "awaiting-approval", icon: "approval" },
  approved: { tone: "queued", icon: "queued" },
  waiting: { tone: "waiting", icon: "hourglass" },
  running: { tone: "running", icon: "running" },
  completed: { tone: "completed", icon: "success" },
  failed: { tone: "failed", icon: "failure" },
  cancelled: { tone: "cancelled", icon: "cancelled" },
};

/** The look of a status of the API; one that is newer than this dashboard looks queued. */
export function statusLook(status: string): { tone: StatusTone; icon: IconName } {
  return (Object.hasOwn(looks, status) && looks[status]) || { tone: "queued", icon: "clock" };
}

/** "awaiting_approval" → "Awaiting approval". */
export function statusWords(label: string): string {
  const words = label.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
