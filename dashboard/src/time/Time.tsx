import { absolute, duration, relative, stopwatch } from "../format";
import { usePreferences } from "../shell/preferences";
import { useNow } from "./clock";

/** A moment: relative, with the absolute time on hover; where asked in full, the reverse. */
export function Time({ at, full = false }: { at: string | null | undefined; full?: boolean }) {
  const now = useNow();
  const { zone } = usePreferences();
  if (!at) return <>—</>;
  const exact = absolute(at, zone);
  return (
    <time dateTime={at} title={full ? relative(at, now) : exact}>
      {full ? exact : relative(at, now)}
    </time>
  );
}

/** How long something has lasted, counting. */
export function Elapsed({ since, asWords = false }: { since: string; asWords?: boolean }) {
  const seconds = Math.max(0, (useNow() - Date.parse(since)) / 1000);
  return <span>{asWords ? duration(seconds) : stopwatch(seconds)}</span>;
}
