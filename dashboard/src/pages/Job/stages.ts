import type { components } from "../../api";
import type { IconName, Tone } from "../../components";
import { cancelOf } from "./cancel";
import { waitTitle } from "./waitsFor";

type Job = components["schemas"]["JobDetailOut"];
type Attempt = components["schemas"]["AttemptOut"];

/** One part of a job's life: a moment, or a time that lasted. */
export type Stage = {
  key: string;
  title: string;
  tone: Tone;
  icon: IconName;
  /** Names and words for people, shown after the title. */
  detail?: string | undefined;
  at: string;
  /** Seconds that it lasted; null: a moment, or it still lasts. */
  seconds: number | null;
  /** It lasts until now. */
  isCurrent: boolean;
};

const ENDS: Record<string, { title: string; icon: IconName; tone: Tone }> = {
  completed: { title: "Completed", icon: "success", tone: "completed" },
  failed: { title: "Failed", icon: "failure", tone: "failed" },
  cancelled: { title: "Cancelled", icon: "cancelled", tone: "cancelled" },
};
// More runs than this are folded in the middle.
const MOST_RUNS = 8;
const FIRST_RUNS = 2;

/** The life of a job, from the oldest stage to the newest. Waits are never negative. */
export function timeline(job: Job, attempts: readonly Attempt[]): Stage[] {
  const builder = new Builder(job.created_at);
  const by = job.created_by === null ? undefined : `by ${job.created_by}`;
  builder.moment("submitted", "Submitted", "queued", "plus", job.created_at, by);
  const moments = [
    ...attempts.map((attempt) => ({ at: attempt.claimed_at ?? job.created_at, attempt })),
    ...job.decisions.map((decision) => ({ at: decision.decided_at, decision })),
  ].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  const analyses = analysisNumbers(job, attempts);
  const hidden = foldedNumbers(attempts);
  const first = attempts[0]?.attempt ?? 1;
  if (first > 1) builder.fold(`${first - 1} earlier attempts`, attempts[0]?.claimed_at ?? null);
  for (const moment of moments) {
    if ("decision" in moment) builder.decision(moment.decision);
    else if (!hidden.has(moment.attempt.attempt)) {
      builder.attempt(moment.attempt, analyses.has(moment.attempt.attempt));
    } else if (!hidden.has(moment.attempt.attempt + 1)) {
      builder.fold(`${hidden.size} more attempts`, moment.attempt.finished_at);
      builder.last = moment.attempt.outcome;
    }
  }
  builder.now(job);
  return builder.stages;
}

/** Attempts that analysed the job instead of running it. */
function analysisNumbers(job: Job, attempts: readonly Attempt[]): Set<number> {
  const done = attempts.find(({ outcome }) => outcome === "analyzed");
  const isBeforeRuns = done === undefined && job.approved_at === null;
  return new Set(
    attempts
      .filter(
        ({ attempt, outcome }) =>
          outcome === "analyzed" || (done ? attempt < done.attempt : isBeforeRuns),
      )
      .map(({ attempt }) => attempt),
  );
}

function foldedNumbers(attempts: readonly Attempt[]): Set<number> {
  if (attempts.length <= MOST_RUNS) return new Set();
  const middle = attempts.slice(FIRST_RUNS, attempts.length - (MOST_RUNS - FIRST_RUNS - 1));
  return new Set(middle.map(({ attempt }) => attempt));
}

class Builder {
  readonly stages: Stage[] = [];
  /** The outcome of the last attempt. */
  last: string | null = null;
  // The end of the last stage.
  #until: string;

  constructor(at: string) {
    this.#until = at;
  }

  moment(key: string, title: string, tone: Tone, icon: IconName, at: string, detail?: string) {
    this.#add({ key, title, tone, icon, at, detail, seconds: null, isCurrent: false });
    this.#reach(at);
  }

  fold(title: string, until: string | null) {
    this.#add({
      key: `folded ${title}`,
      title,
      tone: "neutral",
      icon: "dots",
      at: this.#until,
      seconds: null,
      isCurrent: false,
    });
    if (until !== null) this.#reach(until);
    this.last = null;
  }

  decision(decision: components["schemas"]["DecisionOut"]) {
    const { decided_at: at, decided_by: by, comment } = decision;
    const isRejected = decision.decision === "rejected";
    const words = [by && `by ${by}`, comment && `“${comment}”`].filter(Boolean).join(": ");
    if (decision.decision !== "automatic") {
      this.#span(`wait ${at}`, "Awaiting approval", "awaiting-approval", "approval", at);
    }
    this.moment(
      `decision ${at}`,
      isRejected ? "Rejected" : "Approved",
      isRejected ? "cancelled" : "completed",
      isRejected ? "cross" : "check",
      at,
      words || undefined,
    );
  }

  attempt(attempt: Attempt, isAnalysis: boolean) {
    const { attempt: number, finished_at: to, outcome, worker } = attempt;
    const from = attempt.started_at ?? attempt.claimed_at;
    if (from !== null) this.#wait(`wait ${number}`, from, isAnalysis);
    const look = isAnalysis ? analysisLook(outcome) : runLook(number, outcome);
    const error = attempt.error ? attempt.error.type : undefined;
    const detail = [worker && `on ${worker}`, error].filter(Boolean).join(": ") || undefined;
    const at = from ?? this.#until;
    const isCurrent = outcome === null;
    const seconds = isCurrent || to === null ? null : secondsBetween(at, to);
    this.#add({ key: `attempt ${number}`, ...look, detail, at, seconds, isCurrent });
    if (to !== null) this.#reach(to);
    this.last = outcome;
  }

  /** What the job does now, or how it ended. */
  now(job: Job) {
    const end = ENDS[job.status];
    if (end) {
      const at = job.finished_at ?? this.#until;
      if (this.last === null && Date.parse(at) - Date.parse(this.#until) > 1000) {
        this.#span("wait end", waitedTitle(job), "queued", "queued", at);
      }
      this.moment(job.status, endTitle(job, end.title), end.tone, end.icon, at, endDetail(job));
      return;
    }
    if (this.stages.at(-1)?.isCurrent) return;
    const isDelayed =
      job.run_at !== null && Date.parse(job.run_at) > Date.parse(this.#until) + 1000;
    const looks: Record<string, [string, Tone, IconName]> = {
      pending: ["Waits for its analysis", "analysing", "analysing"],
      awaiting_approval: ["Awaiting approval", "awaiting-approval", "approval"],
      approved: [queueTitle(this.last, isDelayed), "queued", isDelayed ? "clock" : "queued"],
      running: ["Running", "running", "running"],
      waiting: [waitTitle(job.waits_for), "waiting", "hourglass"],
    };
    const [title, tone, icon] = looks[job.status] ?? [job.label, "queued", "clock"];
    this.#add({
      key: "now",
      title,
      tone,
      icon,
      at: this.#until,
      seconds: null,
      isCurrent: true,
    });
  }

  #wait(key: string, to: string, isAnalysis: boolean) {
    const title = isAnalysis ? "Waited for its analysis" : pastWaitTitle(this.last);
    if (this.last === "waited") this.#span(key, title, "waiting", "hourglass", to);
    else this.#span(key, title, "queued", this.last === "snoozed" ? "clock" : "queued", to);
  }

  #span(key: string, title: string, tone: Tone, icon: IconName, to: string) {
    const at = this.#until;
    const seconds = secondsBetween(at, to);
    this.#add({ key, title, tone, icon, at, seconds, isCurrent: false });
    this.#reach(to);
  }

  // Clocks of different processes may disagree a little: time only moves on.
  #reach(at: string) {
    if (Date.parse(at) > Date.parse(this.#until)) this.#until = at;
  }

  #add(stage: Stage) {
    this.stages.push(stage);
  }
}

function secondsBetween(from: string, to: string): number {
  return Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);
}

function analysisLook(outcome: string | null): { title: string; tone: Tone; icon: IconName } {
  if (outcome === "analyzed") return { title: "Analysed", tone: "analysing", icon: "analysing" };
  if (outcome === null) return { title: "Analysing", tone: "analysing", icon: "analysing" };
  return { title: `Analysis ${outcome}`, tone: "failed", icon: "failure" };
}

const OUTCOMES: Record<string, { words: string; tone: Tone; icon: IconName }> = {
  completed: { words: "completed", tone: "completed", icon: "success" },
  failed: { words: "failed", tone: "failed", icon: "failure" },
  lost: { words: "was lost with its worker", tone: "failed", icon: "failure" },
  stalled: { words: "made no progress", tone: "failed", icon: "hourglass" },
  released: { words: "was released by its worker", tone: "queued", icon: "retry" },
  snoozed: { words: "snoozed", tone: "queued", icon: "clock" },
  waited: { words: "began to wait", tone: "waiting", icon: "hourglass" },
  cancelled: { words: "was cancelled", tone: "cancelled", icon: "cancelled" },
};

const UNKNOWN: { tone: Tone; icon: IconName } = { tone: "queued", icon: "clock" };

function runLook(number: number, outcome: string | null) {
  if (outcome === null) {
    return {
      title: `Attempt ${number} runs`,
      tone: "running" as Tone,
      icon: "running" as IconName,
    };
  }
  const { words, tone, icon } = OUTCOMES[outcome] ?? { ...UNKNOWN, words: outcome };
  return { title: `Attempt ${number} ${words}`, tone, icon };
}

/** An attempt's outcome in a word, and its look. */
export function outcomeLook(outcome: string | null): { words: string; tone: Tone; icon: IconName } {
  if (outcome === null) return { words: "running", tone: "running", icon: "running" };
  if (outcome === "analyzed") return { words: "analysed", tone: "analysing", icon: "analysing" };
  const { tone, icon } = OUTCOMES[outcome] ?? UNKNOWN;
  return { words: outcome, tone, icon };
}

function pastWaitTitle(last: string | null): string {
  if (last === "failed" || last === "lost" || last === "stalled") return "Waited for the retry";
  if (last === "waited") return "Waited";
  return last === "snoozed" ? "Snoozed" : "Queued";
}

function queueTitle(last: string | null, isDelayed: boolean): string {
  if (!isDelayed) return "Queued";
  if (last === "snoozed") return "Snoozed";
  return last === "failed" || last === "lost" || last === "stalled"
    ? "Waits for its retry"
    : "Waits for its time";
}

function waitedTitle(job: Job): string {
  if (job.expires_at !== null && job.approved_at === null) return "Awaiting approval";
  return "Queued";
}

function endTitle(job: Job, title: string): string {
  const isExpired = job.status === "cancelled" && cancelOf(job).kind === "expired";
  return isExpired ? "Approval expired" : title;
}

function endDetail(job: Job): string | undefined {
  if (job.status === "failed") return job.error?.type;
  if (job.status !== "cancelled") return undefined;
  const { kind, by, reason } = cancelOf(job);
  if (kind === "after") return "a job before it did not complete";
  // The decision stands before it in the timeline.
  if (kind === "rejected" && job.decisions.length > 0) return undefined;
  return [by && `by ${by}`, reason && `“${reason}”`].filter(Boolean).join(": ") || undefined;
}
