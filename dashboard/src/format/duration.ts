const UNITS: ReadonlyArray<readonly [number, string]> = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A duration in its largest unit, or its two largest below ten: `840 ms`, `41 s`, `3 h 12 min`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "—";
  const length = Math.max(0, seconds);
  if (length < 0.0095) return `${(length * 1000).toFixed(1)} ms`.replace(".0 ", " ");
  if (length < 0.9995) return `${Math.round(length * 1000)} ms`;
  if (length < 9.95) return `${length.toFixed(1).replace(/\.0$/, "")} s`;
  const whole = Math.round(length);
  const at = UNITS.findIndex(([size]) => whole >= size);
  const [size, name] = UNITS[at] ?? [1, "s"];
  const count = Math.floor(whole / size);
  const next = UNITS[at + 1];
  const rest = next && count < 10 ? Math.floor((whole % size) / next[0]) : 0;
  return next && rest > 0 ? `${count} ${name} ${rest} ${next[1]}` : `${count} ${name}`;
}

/** The time of a running clock: `0:42`, `12:07`, `1:02:03`. */
export function stopwatch(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}
