import type { components } from "../api";

type Series = components["schemas"]["SeriesOut"];
export type Point = components["schemas"]["PointOut"];

/** The points of a time series on a regular grid of times, in seconds since 1970. */
export type Grid = {
  bucketS: number;
  /** The start of each bucket; the last one is not over yet. */
  times: number[];
  /** The points of each bucket. */
  cells: Point[][];
  /** How much of the last bucket has passed, in seconds. */
  passedS: number;
};

/**
 * Put the points of a series on a grid that ends now. The first bucket of the window is left out:
 * only a part of it lies within.
 */
export function gridOf({ window_s, bucket_s, points }: Series, nowMs: number): Grid {
  const newest = points.reduce((last, { at }) => Math.max(last, Date.parse(at)), 0);
  // The browser's clock may be behind that of the database.
  const now = Math.max(nowMs, newest) / 1000;
  const last = Math.floor(now / bucket_s) * bucket_s;
  const first = (Math.floor((now - window_s) / bucket_s) + 1) * bucket_s;
  const times: number[] = [];
  for (let at = first; at <= last; at += bucket_s) times.push(at);
  const cells: Point[][] = times.map(() => []);
  for (const point of points) cells[(Date.parse(point.at) / 1000 - first) / bucket_s]?.push(point);
  return { bucketS: bucket_s, times, cells, passedS: now - last };
}

type Count = "started" | "completed" | "failed" | "cancelled";

export function total(points: Point[], field: Count): number {
  return points.reduce((sum, point) => sum + point[field], 0);
}

/** Counts per bucket. */
export function counts(grid: Grid, field: Count): number[] {
  return grid.cells.map((points) => total(points, field));
}

/** Counts per minute; null for a last bucket that has only begun. */
export function perMinute(grid: Grid, field: Count): (number | null)[] {
  const last = grid.cells.length - 1;
  return counts(grid, field).map((count, at) => {
    if (at < last) return (count * 60) / grid.bucketS;
    return grid.passedS < grid.bucketS / 4 ? null : (count * 60) / grid.passedS;
  });
}

/**
 * The waits of all lanes: p50 as the mean of their medians, weighted by starts; p95 as that of the
 * slowest lane. Exact if the grid holds one lane.
 */
export function waits(grid: Grid): { p50: (number | null)[]; p95: (number | null)[] } {
  return { p50: grid.cells.map(weightedMedian), p95: grid.cells.map(slowest) };
}

function weightedMedian(points: Point[]): number | null {
  let [sum, weight] = [0, 0];
  for (const { wait_p50_s, started } of points) {
    if (wait_p50_s === null || started === 0) continue;
    sum += wait_p50_s * started;
    weight += started;
  }
  return weight === 0 ? null : sum / weight;
}

function slowest(points: Point[]): number | null {
  return points.reduce<number | null>(
    (most, { wait_p95_s }) =>
      wait_p95_s === null ? most : Math.max(most ?? wait_p95_s, wait_p95_s),
    null,
  );
}

export const OTHER_TYPES = "other types";

/** Failures per bucket of the job types with the most, and of all others together. */
export function failuresByType(
  grid: Grid,
  most: number,
): Array<{ jobType: string; values: number[] }> {
  const sums = new Map<string, number>();
  for (const { job_type, failed } of grid.cells.flat()) {
    if (failed > 0) sums.set(job_type ?? "", (sums.get(job_type ?? "") ?? 0) + failed);
  }
  const ranked = [...sums].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
  const top = ranked.slice(0, ranked.length > most ? most - 1 : most).map(([name]) => name);
  const of = (wants: (name: string) => boolean) =>
    grid.cells.map((points) =>
      total(
        points.filter(({ job_type }) => wants(job_type ?? "")),
        "failed",
      ),
    );
  const named = top.map((jobType) => ({ jobType, values: of((name) => name === jobType) }));
  if (ranked.length <= top.length) return named;
  return [...named, { jobType: OTHER_TYPES, values: of((name) => !top.includes(name)) }];
}

/** The place of the only value; null if there is none, or more than one. */
export function loneValue(values: ArrayLike<number | null | undefined>): number | null {
  const places = Array.from(values, (value, at) => (value == null ? -1 : at)).filter(
    (at) => at >= 0,
  );
  return places.length === 1 ? (places[0] ?? null) : null;
}
