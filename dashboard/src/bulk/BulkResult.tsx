import { Notice, ProgressBar } from "../components";
import { count } from "../format";
import styles from "./Bulk.module.css";
import { type BulkProgress, percentOf, sum, summary } from "./progress";
import type { Verb } from "./verbs";

/** The progress of a bulk action, and in the end what came of it. */
export function BulkResult({ verb, progress }: { verb: Verb; progress: BulkProgress }) {
  const { state, total, done, skipped, failed } = progress;
  const isRunning = state === "running";
  return (
    <>
      {isRunning ? (
        <ProgressBar percent={percentOf(progress)} label={`${verb.label} jobs`} />
      ) : (
        <Notice
          kind={state !== "done" || sum(failed) > 0 ? "warning" : "success"}
          live
          title={summary(verb, progress)}
        >
          {state === "interrupted" && "The server stopped in between. Send it again to continue."}
          {state === "failed" && "The run ended early. Send it again to continue."}
        </Notice>
      )}
      <dl className={styles.counts}>
        <Figure name="Done" value={done} total={isRunning ? total : null} />
        <Figure name="Skipped" value={sum(skipped)} />
        <Figure name="Failed" value={sum(failed)} />
      </dl>
      <Reasons title="Skipped because" counts={skipped} />
      <Reasons title="Failed because" counts={failed} />
    </>
  );
}

function Figure({ name, value, total }: { name: string; value: number; total?: number | null }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {count(value)}
        {total ? <span className="muted"> of {count(total)}</span> : null}
      </dd>
    </div>
  );
}

function Reasons({ title, counts }: { title: string; counts: Record<string, number> }) {
  const entries = Object.entries(counts).sort(([, one], [, other]) => other - one);
  if (entries.length === 0) return null;
  return (
    <section>
      <h3 className={styles.reasonTitle}>{title}</h3>
      <ul className={styles.reasons}>
        {entries.slice(0, 8).map(([reason, number]) => (
          <li key={reason}>
            <span className="numeric">{count(number)}</span> <span>{reason}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
