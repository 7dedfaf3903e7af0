import type { components } from "../../api";
import { type Grid, gridOf, type Point, perMinute, total } from "../../charts/grid";

type Series = components["schemas"]["SeriesOut"];

export const LANE_WINDOW_S = 1800;
/** What ends by the minute, by lane: the base of a lane's figures. */
export const byMinuteQuery = { query: { window_s: LANE_WINDOW_S, bucket_s: 60, by_lane: true } };
/** Figures over time grow old without an event: when nothing happens, they fall to zero. */
export const AGEING = { everyS: 60 };
const RATE_BUCKETS = 5;

/** The figures of one lane over the last half hour. */
export type LaneNumbers = {
  /** Completed jobs per minute, the minute that has just begun left out. */
  spark: number[];
  /** Over the last minutes; null until it is known. */
  donePerMinute: number | null;
  runP95S: number | null;
  failed: number;
  ended: number;
};

/** The figures of every lane: from a series by minute, and from one that is a single bucket. */
export function laneNumbers(
  byMinute: Series | undefined,
  whole: Series | undefined,
  nowMs: number,
): (lane: string) => LaneNumbers {
  const minutes = byMinute ? gridOf(byMinute, nowMs) : null;
  return (lane) => {
    const grid = minutes === null ? null : only(minutes, lane);
    const points = whole?.points.filter((point) => point.lane === lane) ?? [];
    const failed = total(points, "failed");
    return {
      spark: grid === null ? [] : perMinute(grid, "completed").slice(0, -1).map(Number),
      donePerMinute: grid === null ? null : recentRate(grid),
      runP95S: points[0]?.run_p95_s ?? null,
      failed,
      ended: failed + total(points, "completed") + total(points, "cancelled"),
    };
  };
}

function only(grid: Grid, lane: string): Grid {
  const ofLane = (points: Point[]) => points.filter((point) => point.lane === lane);
  return { ...grid, cells: grid.cells.map(ofLane) };
}

function recentRate(grid: Grid): number {
  const recent = grid.cells.slice(-RATE_BUCKETS);
  const seconds = (recent.length - 1) * grid.bucketS + grid.passedS;
  return seconds > 0 ? (total(recent.flat(), "completed") * 60) / seconds : 0;
}

/** `41`, `0.4`; zero stays `0`, and `—` is unknown. */
export function rateWords(perMinute: number | null): string {
  if (perMinute === null) return "—";
  if (perMinute === 0) return "0";
  if (perMinute < 0.1) return "< 0.1";
  return perMinute < 10 ? String(Math.round(perMinute * 10) / 10) : String(Math.round(perMinute));
}
