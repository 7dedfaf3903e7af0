import { lazy, Suspense } from "react";
import { Skeleton } from "../components";
import type { Zone } from "../format";

export type ChartSeries = {
  label: string;
  /** The name of a colour token, without `--`. */
  colour: string;
  /** One value for each time; null is a gap. */
  values: (number | null)[];
  /** The list behind the series. */
  href?: string | undefined;
  /** A dashed line, to tell series apart without colour. */
  isDashed?: boolean;
};

export type ChartProps = {
  /** What the chart shows, for screen readers. */
  label: string;
  /** In seconds since 1970. */
  times: number[];
  series: ChartSeries[];
  /** Bars on top of each other instead of lines. */
  isStacked?: boolean;
  unit: "count" | "seconds";
  zone: Zone;
  /** Charts with the same key share their crosshair. */
  crosshair: string;
};

const HEIGHT = 180;

const Drawing = lazy(() => import("./Drawing"));

/** A chart over time. Its library is loaded when the first chart is shown. */
export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<Skeleton height={HEIGHT + 28} />}>
      <Drawing {...props} height={HEIGHT} />
    </Suspense>
  );
}
