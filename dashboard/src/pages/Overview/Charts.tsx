import { useMemo } from "react";
import { type components, useApi } from "../../api";
import {
  Chart,
  type ChartSeries,
  counts,
  failuresByType,
  gridOf,
  OTHER_TYPES,
  perMinute,
  total,
  waits,
} from "../../charts";
import { Card, EmptyState, Segments, Select, Skeleton } from "../../components";
import { plural } from "../../format";
import { type FailingRead, failedRead } from "../../shell/failedRead";
import { usePreferences } from "../../shell/preferences";
import { href, useUrlValue } from "../../shell/url";
import { AGEING } from "./laneNumbers";
import styles from "./Overview.module.css";

type Series = components["schemas"]["SeriesOut"];

const WINDOWS = [
  { id: "30m", words: "30 min", window_s: 1800, bucket_s: 60 },
  { id: "6h", words: "6 h", window_s: 21_600, bucket_s: 300 },
  { id: "24h", words: "24 h", window_s: 86_400, bucket_s: 1200 },
] as const;
const ALL = "";
const TYPE_COLOURS = [
  "failed-mark",
  "awaiting-approval-mark",
  "analysing-mark",
  "running-mark",
  "queued-mark",
];

/** Throughput, waits and failures over time, with one crosshair. */
export function Charts({ lanes }: { lanes: string[] }) {
  const [wanted] = useUrlValue("window");
  const [lane, setLane] = useUrlValue("lane");
  const chosen = WINDOWS.find(({ id }) => id === wanted) ?? WINDOWS[0];
  const { window_s, bucket_s } = chosen;
  const of = lane === null ? {} : { lane };
  const byLane = useApi(
    "/admin/stats",
    { query: { window_s, bucket_s, by_lane: true, ...of } },
    AGEING,
  );
  const byType = useApi("/admin/stats", { query: { window_s, bucket_s, ...of } }, AGEING);
  return (
    <section aria-label="Charts" className={styles.charts}>
      <header className={styles.chartsHead}>
        <h2>Over time</h2>
        <WindowLinks chosen={chosen.id} lane={lane} />
        <Select
          label="Lane of the charts"
          hideLabel
          value={lane ?? ALL}
          onChange={(id) => setLane(id || null)}
          options={[
            { id: ALL, label: "All lanes" },
            ...lanes.map((name) => ({ id: name, label: name })),
          ]}
        />
      </header>
      <div className={styles.chartGrid}>
        <ThroughputChart read={byLane} />
        <WaitChart read={byLane} isOneLane={lane !== null || lanes.length === 1} />
        <FailureChart read={byType} />
      </div>
      {byLane.data?.is_capped && (
        <p className={styles.note}>
          There are too many jobs to count all of them: the charts have only the newest.
        </p>
      )}
    </section>
  );
}

function WindowLinks({ chosen, lane }: { chosen: string; lane: string | null }) {
  return (
    <Segments
      label="Time range"
      items={WINDOWS.map(({ id, words }) => ({
        href: href("/", { window: id === "30m" ? null : id, lane }),
        label: words,
        isCurrent: id === chosen,
      }))}
    />
  );
}

type SeriesRead = FailingRead & { data: Series | undefined; dataUpdatedAt: number };
type ChartCardProps = { read: SeriesRead };

function useGrid({ data, dataUpdatedAt }: SeriesRead) {
  return useMemo(() => (data ? gridOf(data, dataUpdatedAt) : null), [data, dataUpdatedAt]);
}

function ThroughputChart({ read }: ChartCardProps) {
  const grid = useGrid(read);
  const shown: ChartSeries[] | null = grid && [
    {
      label: "Started",
      colour: "running-mark",
      values: perMinute(grid, "started"),
      isDashed: true,
    },
    { label: "Completed", colour: "completed-mark", values: perMinute(grid, "completed") },
    {
      label: "Failed",
      colour: "failed-mark",
      values: perMinute(grid, "failed"),
      href: "/failures",
    },
  ];
  const words = grid
    ? `${plural(sum(counts(grid, "completed")), "job")} completed, ${sum(counts(grid, "failed"))} failed`
    : "";
  return (
    <ChartCard
      read={read}
      title="Jobs per minute"
      words={words}
      times={grid?.times}
      series={shown}
      unit="count"
    />
  );
}

function WaitChart({ read, isOneLane }: ChartCardProps & { isOneLane: boolean }) {
  const grid = useGrid(read);
  const { p50, p95 } = grid ? waits(grid) : { p50: [], p95: [] };
  const shown: ChartSeries[] | null = grid && [
    { label: "p50", colour: "running-mark", values: p50 },
    {
      label: isOneLane ? "p95" : "p95 of the slowest lane",
      colour: "awaiting-approval-mark",
      values: p95,
      isDashed: true,
    },
  ];
  return (
    <ChartCard
      read={read}
      title="Wait until the start"
      words="p50 and p95 of the time between submit and start"
      times={grid?.times}
      series={shown}
      unit="seconds"
    />
  );
}

function FailureChart({ read }: ChartCardProps) {
  const grid = useGrid(read);
  const shown: ChartSeries[] | null =
    grid &&
    failuresByType(grid, TYPE_COLOURS.length).map(({ jobType, values }, place) => ({
      label: jobType,
      colour: TYPE_COLOURS[place] ?? "queued-mark",
      values,
      href: href("/failures", { job_type: jobType === OTHER_TYPES ? null : jobType }),
    }));
  const failed = grid ? sum(grid.cells.map((points) => total(points, "failed"))) : 0;
  return (
    <ChartCard
      read={read}
      title="Failures by job type"
      words={plural(failed, "failure")}
      times={grid?.times}
      series={shown}
      unit="count"
      isStacked
    />
  );
}

type ChartFrameProps = {
  read: SeriesRead;
  title: string;
  words: string;
  times: number[] | undefined;
  series: ChartSeries[] | null;
  unit: "count" | "seconds";
  isStacked?: boolean;
};

function ChartCard(props: ChartFrameProps) {
  const { read, title, words, times, series, unit, isStacked = false } = props;
  const { zone } = usePreferences();
  return (
    <Card title={title}>
      {series === null || times === undefined ? (
        failedRead([read]) ? (
          <div className={styles.noChart}>
            <EmptyState icon="warning" title="The figures could not be read" />
          </div>
        ) : (
          <Skeleton height={208} />
        )
      ) : series.length === 0 ? (
        <div className={styles.noChart}>
          <EmptyState icon="success" title="No failures in this time" />
        </div>
      ) : (
        <Chart
          label={`${title}: ${words}`}
          times={times}
          series={series}
          unit={unit}
          isStacked={isStacked}
          zone={zone}
          crosshair="overview"
        />
      )}
    </Card>
  );
}

function sum(values: number[]): number {
  return values.reduce((all, each) => all + each, 0);
}
