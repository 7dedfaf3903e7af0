import { useState } from "react";
import { type components, useApiPages } from "../../api";
import {
  Badge,
  Button,
  Card,
  cx,
  Icon,
  LinkText,
  type LogLine,
  LogView,
  Notice,
  statusWords,
  Traceback,
} from "../../components";
import { absolute, between, duration, plural } from "../../format";
import { usePreferences } from "../../shell/preferences";
import { href } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import styles from "./Attempts.module.css";
import { outcomeLook } from "./stages";

type Job = components["schemas"]["JobDetailOut"];
type Attempt = components["schemas"]["AttemptOut"];

/** The attempts of a job, the newest first, each with its error and log. */
export function Attempts({ job, isPrivateShown }: { job: Job; isPrivateShown: boolean }) {
  const [isAllWanted, setAllWanted] = useState(false);
  const all = useApiPages(
    "/jobs/{job_id}/attempts",
    // More than the job itself has, so that the first page adds some.
    { path: { job_id: job.id }, query: { limit: 200 } },
    { enabled: isAllWanted },
  );
  const newest = [...job.attempts].reverse();
  const known = new Set(newest.map(({ attempt }) => attempt));
  const attempts = [...newest, ...all.items.filter(({ attempt }) => !known.has(attempt))];
  const hasMore = (attempts.at(-1)?.attempt ?? 1) > 1 && (!isAllWanted || all.hasNextPage);
  if (attempts.length === 0) return null;
  return (
    <Card title="Attempts" subtitle={subtitle(job)} flush>
      <ol className={styles.attempts}>
        {attempts.map((attempt, at) => (
          <AttemptItem
            key={attempt.attempt}
            job={job}
            attempt={attempt}
            isNewest={at === 0}
            isPrivateShown={isPrivateShown}
          />
        ))}
      </ol>
      {hasMore && (
        <div className={styles.foot}>
          <Button
            isPending={all.isFetching}
            onPress={() => (isAllWanted ? void all.fetchNextPage() : setAllWanted(true))}
          >
            Show older attempts
          </Button>
        </div>
      )}
      {!isPrivateShown && (
        <div className={styles.foot}>
          <Notice kind="info">
            Logs and tracebacks are hidden: they need the permission <code>jobs:debug</code>.
          </Notice>
        </div>
      )}
    </Card>
  );
}

function subtitle(job: Job): string {
  const starts = plural(job.attempt, "attempt");
  return `${starts}, ${job.retries} of ${plural(job.max_retries, "retry", "retries")} used`;
}

type AttemptProps = { job: Job; attempt: Attempt; isNewest: boolean; isPrivateShown: boolean };

function AttemptItem({ job, attempt, isNewest, isPrivateShown }: AttemptProps) {
  const [isOpen, setOpen] = useState(isNewest);
  const { words, tone, icon } = outcomeLook(attempt.outcome);
  const hasContent = attempt.error !== null || isPrivateShown;
  const head = (
    <>
      <span className={styles.number}>
        <span className="visually-hidden">Attempt </span>
        {attempt.attempt}
      </span>
      <Badge tone={tone} icon={icon}>
        {statusWords(words)}
      </Badge>
      <span className={styles.error}>{attempt.error?.type}</span>
      <span className={styles.length}>
        <AttemptLength attempt={attempt} />
      </span>
      <span className={styles.at}>
        <Time at={attempt.claimed_at} />
      </span>
    </>
  );
  return (
    <li className={styles.attempt}>
      {hasContent ? (
        <button
          type="button"
          className={styles.head}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon
            name="chevron-right"
            size={12}
            className={cx(styles.arrow, isOpen && styles.open)}
          />
          {head}
        </button>
      ) : (
        <div className={styles.head}>
          <span className={styles.arrow} />
          {head}
        </div>
      )}
      {isOpen && hasContent && (
        <div className={styles.body}>
          <p className={styles.facts}>
            {attempt.worker && (
              <span>
                Worker{" "}
                <LinkText href={href("/jobs", { worker: attempt.worker })}>
                  {attempt.worker}
                </LinkText>
              </span>
            )}
            <span>
              Claimed <Time at={attempt.claimed_at} full />
            </span>
            {attempt.finished_at && (
              <span>
                Ended <Time at={attempt.finished_at} full />
              </span>
            )}
          </p>
          <AttemptError attempt={attempt} isShownAbove={isNewest && job.status === "failed"} />
          {isPrivateShown && <AttemptLog attempt={attempt} />}
        </div>
      )}
    </li>
  );
}

function AttemptLength({ attempt }: { attempt: Attempt }) {
  if (attempt.outcome === null && attempt.claimed_at) return <Elapsed since={attempt.claimed_at} />;
  return duration(between(attempt.started_at ?? attempt.claimed_at, attempt.finished_at));
}

function AttemptError({ attempt, isShownAbove }: { attempt: Attempt; isShownAbove: boolean }) {
  const { error } = attempt;
  if (error === null) return null;
  if (isShownAbove) return <p className={styles.facts}>Its error is at the top of this page.</p>;
  return (
    <div className={styles.failure}>
      <p className={styles.message}>
        <strong>{error.type}</strong>
        {error.message && `: ${error.message}`}
      </p>
      {error.traceback && <Traceback text={error.traceback} />}
    </div>
  );
}

function AttemptLog({ attempt }: { attempt: Attempt }) {
  const { zone } = usePreferences();
  const lines = attempt.log ?? [];
  const hidden = (attempt.log_lines ?? lines.length) - lines.length;
  const shown = lines.map((line, at): LogLine => {
    const exact = absolute(line.at, zone);
    const time = exact.split(" ")[1] ?? exact;
    return {
      id: hidden + at,
      time,
      timeTitle: exact,
      level: line.level,
      message: line.message,
    };
  });
  if (lines.length === 0) return <p className={styles.facts}>This attempt logged nothing.</p>;
  return (
    <>
      {hidden > 0 && (
        <p className={styles.facts}>
          Only the newest lines are shown, without {plural(hidden, "older one")}.
        </p>
      )}
      <LogView label={`Log of attempt ${attempt.attempt}`} lines={shown} />
    </>
  );
}
