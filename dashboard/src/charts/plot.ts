import uPlot from "uplot";
import { count, duration } from "../format";
import type { ChartProps } from "./Chart";
import { faded, tokenColour } from "./colours";
import { loneValue } from "./grid";

// Whole numbers only: there are no half jobs.
const COUNT_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6];
// Waits reach from milliseconds to days, so their scale is logarithmic.
const TIME_MARKS = [0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000];

/** The rows that uPlot draws. Stacked series lie on each other, the first at the bottom. */
export function plotData({ times, series, isStacked }: ChartProps): uPlot.AlignedData {
  if (!isStacked) return [times, ...series.map(({ values }) => values)];
  const sums: number[] = times.map(() => 0);
  const rows = series.map(({ values }) =>
    values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + (value ?? 0);
      return sums[at];
    }),
  );
  // The highest is drawn first, and the others over it.
  return [times, ...rows.reverse()];
}

/** A value of a chart in words. */
export function valueWords(value: number, unit: ChartProps["unit"]): string {
  if (unit === "seconds") return duration(value);
  return value < 10 ? String(Math.round(value * 10) / 10) : count(Math.round(value));
}

export type PlotHooks = { onCursor: (at: number | null) => void };

/** The options of a plot inside an element, with the colours of the theme shown there. */
export function plotOptions(
  props: ChartProps,
  element: Element,
  size: { width: number; height: number },
  { onCursor }: PlotHooks,
): uPlot.Options {
  const colour = (token: string) => tokenColour(element, token);
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis: uPlot.Axis = {
    stroke: colour("text-subtle"),
    font,
    ticks: { show: false },
    grid: { stroke: colour("border"), width: 1 },
  };
  const drawn = props.isStacked ? props.series.toReversed() : props.series;
  const isTime = props.unit === "seconds";
  const half = ((props.times[1] ?? 0) - (props.times[0] ?? 0)) / 2;
  return {
    ...size,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: props.crosshair },
      drag: { x: false, y: false },
      y: false,
      points: { show: !props.isStacked, size: 6 },
    },
    scales: {
      // Half a bucket more, so that the bars at both ends are whole.
      x: { time: true, range: (_plot, min, max) => [min - half, max + half] },
      y: isTime
        ? { distr: 3, range: (_plot, min, max) => timeRange(min, max) }
        : { range: (_plot, _min, max) => [0, Math.max(4, (max ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 24, space: 70, values: timeLabels(props) },
      {
        ...axis,
        size: 52,
        space: 36,
        // A logarithmic axis would leave out the marks that are no powers of ten.
        ...(isTime
          ? { splits: timeMarks, filter: (_plot, marks) => marks }
          : { incrs: COUNT_STEPS }),
        values: (_plot, all) => all.map((value) => valueWords(value, props.unit)),
      },
    ],
    series: [
      {},
      ...drawn.map(({ label, colour: token, isDashed }): uPlot.Series => {
        const stroke = colour(token);
        if (props.isStacked) {
          const paths = uPlot.paths.bars?.({ size: [0.8, 24], gap: 1 });
          return {
            label,
            width: 0,
            fill: stroke,
            stroke,
            points: { show: false },
            ...(paths && { paths }),
          };
        }
        return {
          label,
          stroke,
          width: 1.75,
          // A value between two gaps has no line.
          points: { show: true, size: 5, fill: stroke, filter: isolated },
          ...(isDashed ? { dash: [5, 4] } : { fill: faded(stroke, 0.08) }),
        };
      }),
    ],
    hooks: {
      draw: [(plot) => labelLonePoints(plot, props.unit, font)],
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)],
    },
    ...(props.zone === "utc" && {
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    }),
  };
}

const isolated: uPlot.Series.Points.Filter = (plot, place) => {
  const values = plot.data[place] ?? [];
  const isGap = (at: number) => values[at] === null || values[at] === undefined;
  return Array.from(values, (_, at) => at).filter(
    (at) => !isGap(at) && isGap(at - 1) && isGap(at + 1),
  );
};

const LINE_PX = 12;

/** Write the value beside a point that is the only one of its series: there is no line to read. */
function labelLonePoints(plot: uPlot, unit: ChartProps["unit"], font: string): void {
  const written: number[] = [];
  const { ctx } = plot;
  plot.series.forEach((series, place) => {
    const values = plot.data[place] ?? [];
    const at = loneValue(values);
    const value = at === null ? null : values[at];
    const time = at === null ? undefined : plot.data[0][at];
    if (place === 0 || value == null || time === undefined || !series.points?.show) return;
    const y = plot.valToPos(value, "y", true);
    if (written.some((other) => Math.abs(other - y) < LINE_PX * uPlot.pxRatio)) return;
    written.push(y);
    const x = plot.valToPos(time, "x", true);
    const isLeft = x < plot.bbox.left + plot.bbox.width / 2;
    const gap = 6 * uPlot.pxRatio;
    ctx.save();
    ctx.font = font.replace(/[\d.]+px/, `${11 * uPlot.pxRatio}px`);
    ctx.fillStyle = String(
      typeof series.stroke === "function" ? series.stroke(plot, place) : series.stroke,
    );
    ctx.textAlign = isLeft ? "left" : "right";
    ctx.textBaseline = "bottom";
    ctx.fillText(valueWords(value, unit), x + (isLeft ? gap : -gap), y);
    ctx.restore();
  });
}

/** From the mark below the least value to the mark above the greatest. */
export function timeRange(min: number | null, max: number | null): [number, number] {
  const [first = 0.001, ...others] = TIME_MARKS;
  const least = TIME_MARKS.findLast((mark) => mark <= (min ?? 0.1)) ?? first;
  const greatest = others.find((mark) => mark >= (max ?? 1)) ?? others.at(-1) ?? 1;
  return [least, Math.max(greatest, least * 10)];
}

const timeMarks: uPlot.Axis.Splits = (_plot, _axis, min, max) =>
  TIME_MARKS.filter((mark) => mark >= min && mark <= max);

const TIME: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

function timeLabels({ zone }: ChartProps): uPlot.Axis.Values {
  const words = new Intl.DateTimeFormat("en-GB", {
    ...TIME,
    ...(zone === "utc" && { timeZone: "UTC" }),
  });
  return (_plot, all) => all.map((seconds) => words.format(seconds * 1000));
}
