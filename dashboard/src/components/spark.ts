export interface SparkShape {
  line: string;
  area: string;
}

/** The outline of a sparkline. Gaps (null) break the line; the lowest edge is zero. */
export function sparkShape(
  values: readonly (number | null)[],
  width: number,
  height: number,
): SparkShape {
  const top = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const point = (value: number, at: number) =>
    `${round(at * step)} ${round(height - (value / top) * (height - 2) - 1)}`;
  const runs: [number, number][][] = [];
  let open = false;
  values.forEach((value, at) => {
    if (value === null) {
      open = false;
      return;
    }
    if (!open) runs.push([]);
    open = true;
    runs.at(-1)?.push([value, at]);
  });
  const line = runs
    .map((run) => `M${run.map(([value, at]) => point(value, at)).join("L")}`)
    .join("");
  const area = runs
    .map((run) => {
      const first = run[0]?.[1] ?? 0;
      const last = run.at(-1)?.[1] ?? 0;
      const tops = run.map(([value, at]) => point(value, at)).join("L");
      return `M${round(first * step)} ${height}L${tops}L${round(last * step)} ${height}Z`;
    })
    .join("");
  return { line, area };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
