import type { JobGraph } from "./jobGraph";

type TimedJob = {
  created_at: string | null;
  started_at: string | null;
  finished_at: string | null;
};

/** When a job, or several, could start, began and ended; in milliseconds since 1970. */
export type GanttRow = {
  key: string;
  jobs: readonly number[];
  /** All jobs before had ended: from here on it waited for a slot. */
  from: number;
  started: number | null;
  to: number;
};
export type Gantt = {
  start: number;
  end: number;
  rows: GanttRow[];
  /** The number of jobs that cannot start yet: they have nothing to show. */
  ahead: number;
};

/** Rows in the order in which they could start. Jobs without an end reach until now. */
export function ganttOf(
  jobs: readonly TimedJob[],
  { parents }: JobGraph,
  nodes: readonly { key: string; jobs: readonly number[] }[],
  now: number,
): Gantt {
  const ends = jobs.map(({ finished_at }) => parse(finished_at));
  const open = jobs.map(({ created_at }, place) => {
    const before = (parents[place] ?? []).map((parent) => ends[parent] ?? null);
    const created = parse(created_at) ?? now;
    // A job that waits for another one has nothing to show yet.
    if (before.includes(null) && jobs[place]?.started_at == null) return null;
    return before.reduce<number>((last, end) => Math.max(last, end ?? 0), created);
  });
  const rows = nodes.flatMap(({ key, jobs: places }) => {
    const shown = places.filter((place) => open[place] !== null);
    if (shown.length === 0) return [];
    const started = shown.map((place) => parse(jobs[place]?.started_at ?? null));
    const begun = started.filter((at) => at !== null);
    const first = begun.length === 0 ? null : least(begun);
    const from = least(
      shown.map((place, n) => Math.min(open[place] ?? now, started[n] ?? Number.POSITIVE_INFINITY)),
    );
    const to = most(shown.map((place) => ends[place] ?? now));
    return [{ key, jobs: places, from: Math.min(from, to), started: first, to }];
  });
  rows.sort(
    (one, other) => one.from - other.from || (one.started ?? one.to) - (other.started ?? other.to),
  );
  const start = rows.length === 0 ? now : least(rows.map(({ from }) => from));
  const end = rows.length === 0 ? now : most(rows.map(({ to }) => to));
  return { start, end, rows, ahead: open.filter((at) => at === null).length };
}

const parse = (at: string | null): number | null => (at === null ? null : Date.parse(at));
// Not Math.min(...): ten thousand arguments are too many for some browsers.
const least = (values: number[]) => values.reduce((one, other) => Math.min(one, other));
const most = (values: number[]) => values.reduce((one, other) => Math.max(one, other));

const STEPS_S = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
  1800, 3600, 7200, 21_600, 43_200, 86_400,
];

/** The seconds at which an axis of this length is marked: few, and at round values. */
export function ticksOf(seconds: number, most = 6): number[] {
  const days = Math.ceil(seconds / 86_400 / most) * 86_400;
  const step = STEPS_S.find((each) => seconds / each <= most) ?? days;
  return Array.from({ length: Math.floor(seconds / step + 1e-9) + 1 }, (_, n) => n * step);
}
