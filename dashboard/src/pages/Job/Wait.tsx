import { Stat, StatRow } from "../../components";
import { plural } from "../../format";
import { Elapsed, Time } from "../../time";
import styles from "./Now.module.css";
import type { WaitsFor } from "./waitsFor";

/** What a waiting job waits for, since when, and for how long at most. */
export function Wait({ wait }: { wait: WaitsFor }) {
  const since = wait.since !== null && (
    <Stat label="Waiting" value={<Elapsed since={wait.since} asWords />} />
  );
  if (wait.kind === "event") {
    return (
      <StatRow>
        <Stat
          label="Event"
          value={<span className={styles.name}>{wait.event}</span>}
          detail={wait.key ? `key ${wait.key}` : "without a key"}
        />
        {since}
        <Stat
          label="Times out"
          value={wait.until === null ? "never" : <Time at={wait.until} />}
          detail={wait.until !== null && "its handler sees TimeoutError then"}
        />
      </StatRow>
    );
  }
  if (wait.kind === "sleep") {
    return (
      <StatRow>
        <Stat label="Sleep" value={<span className={styles.name}>{wait.name}</span>} />
        {since}
        <Stat label="Continues" value={<Time at={wait.until} />} />
      </StatRow>
    );
  }
  const noun = wait.kind === "sub_jobs" ? "sub-job" : "job";
  return (
    <StatRow>
      <Stat label="Not completed yet" value={plural(wait.missing ?? 0, noun)} />
      {since}
    </StatRow>
  );
}
