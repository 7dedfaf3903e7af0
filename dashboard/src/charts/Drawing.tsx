import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { LinkText } from "../components";
import { absolute } from "../format";
import type { ChartProps } from "./Chart";
import styles from "./Chart.module.css";
import { useTheme } from "./colours";
import { plotData, plotOptions, valueWords } from "./plot";

/** Draws a chart with uPlot, and its legend as text. */
export default function Drawing(props: ChartProps & { height: number }) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const theme = useTheme();
  // Another shape of the chart needs another plot; other values do not.
  const shape = JSON.stringify([
    theme,
    props.zone,
    props.crosshair,
    props.height,
    props.series.map(({ label, colour }) => [label, colour]),
  ]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` says when to draw again
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const given = latest.current;
    const size = { width: element.clientWidth || 300, height: given.height };
    const drawn = new uPlot(
      plotOptions(given, element, size, { onCursor: setAt }),
      plotData(given),
      element,
    );
    plot.current = drawn;
    const resize = new ResizeObserver(() =>
      drawn.setSize({ width: element.clientWidth, height: given.height }),
    );
    resize.observe(element);
    return () => {
      resize.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [shape]);

  const data = plotData(props);
  const dataKey = JSON.stringify(data);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `dataKey` says when values changed
  useEffect(() => plot.current?.setData(data), [dataKey]);

  return (
    <figure className={styles.chart} aria-label={props.label}>
      <Legend {...props} at={at} />
      <div
        ref={frame}
        className={styles.frame}
        style={{ height: props.height }}
        aria-hidden="true"
      />
    </figure>
  );
}

/** The series and their values: below the crosshair; otherwise the newest, or the sum of bars. */
function Legend(props: ChartProps & { at: number | null }) {
  const { series, times, unit, zone, isStacked = false, at } = props;
  const time = at === null ? undefined : times[at];
  return (
    <figcaption className={styles.legend}>
      {series.map(({ label, colour, values, href, isDashed }) => (
        <span key={label} className={styles.entry}>
          <span
            className={styles.mark}
            data-dashed={isDashed || undefined}
            style={{ color: `var(--${colour})` }}
            aria-hidden="true"
          />
          {href ? (
            <LinkText href={href} quiet>
              {label}
            </LinkText>
          ) : (
            label
          )}
          <strong className={styles.value}>{shown(values, at, unit, isStacked)}</strong>
        </span>
      ))}
      <span className={styles.time}>
        {time === undefined
          ? isStacked
            ? "in all"
            : "newest"
          : absolute(new Date(time * 1000).toISOString(), zone).slice(11, 16)}
      </span>
    </figcaption>
  );
}

function shown(
  values: (number | null)[],
  at: number | null,
  unit: ChartProps["unit"],
  isSum: boolean,
): string {
  if (at === null && isSum) return valueWords(values.reduce<number>(plus, 0), unit);
  const value = at === null ? values.findLast((each) => each !== null) : values[at];
  return value === null || value === undefined ? "—" : valueWords(value, unit);
}

function plus(sum: number, value: number | null): number {
  return sum + (value ?? 0);
}
