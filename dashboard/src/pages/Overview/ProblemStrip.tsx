import { useState } from "react";
import { Link } from "wouter";
import { Button, cx, Icon, toneClass } from "../../components";
import { plural } from "../../format";
import { mute, unmute, useMuted } from "./muted";
import styles from "./Overview.module.css";
import type { DetectedProblem } from "./problems";

type Props = {
  problems: DetectedProblem[];
  /** Everything could be checked. */
  isComplete: boolean;
};

/** What is wrong, each with the place to act; muted ones stay hidden in this browser for a day. */
export function ProblemStrip({ problems, isComplete }: Props) {
  const muted = useMuted();
  const [isShowingMuted, setShowingMuted] = useState(false);
  const quiet = problems.filter(({ id }) => id in muted);
  const shown = isShowingMuted ? problems : problems.filter(({ id }) => !(id in muted));
  return (
    <section aria-label="Problems" className={styles.problems}>
      {problems.length === quiet.length && (
        <p className={styles.healthy}>
          <Icon name={isComplete ? "success" : "warning"} />
          {`No ${problems.length === 0 ? "" : "other "}problems found`}
          {!isComplete && ", but not everything could be checked"}
          {quiet.length > 0 && (
            <ShowMuted count={quiet.length} isOn={isShowingMuted} onChange={setShowingMuted} />
          )}
        </p>
      )}
      {shown.length > 0 && (
        <div className={styles.strip}>
          <header className={styles.stripHead}>
            <h2>{plural(shown.length, "problem")}</h2>
            <span className={styles.stripActions}>
              {quiet.length > 0 && quiet.length < problems.length && (
                <ShowMuted count={quiet.length} isOn={isShowingMuted} onChange={setShowingMuted} />
              )}
              {quiet.length < problems.length && (
                <Button size="sm" variant="quiet" onPress={() => mute(shown.map(({ id }) => id))}>
                  Mute all
                </Button>
              )}
            </span>
          </header>
          <ul>
            {shown.map((problem) => (
              <ProblemLine key={problem.id} problem={problem} isMuted={problem.id in muted} />
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

type ShowMutedProps = { count: number; isOn: boolean; onChange: (isOn: boolean) => void };

function ShowMuted({ count, isOn, onChange }: ShowMutedProps) {
  return (
    <Button size="sm" variant="quiet" onPress={() => onChange(!isOn)}>
      {isOn ? "Hide muted" : `Show ${count} muted`}
    </Button>
  );
}

function ProblemLine({ problem, isMuted }: { problem: DetectedProblem; isMuted: boolean }) {
  const { id, severity, title, detail, href } = problem;
  const isError = severity === "error";
  return (
    <li className={cx(styles.problem, toneClass(isError ? "failed" : "warning"))}>
      <Icon
        name={isError ? "error" : "warning"}
        label={isError ? "Error" : "Warning"}
        className={styles.problemIcon}
      />
      <Link href={href} className={styles.problemLink}>
        <strong>{title}</strong>
        <span>{detail}</span>
      </Link>
      <Button
        size="sm"
        variant="quiet"
        aria-label={`${isMuted ? "Unmute" : "Mute for a day in this browser"}: ${title}`}
        onPress={() => (isMuted ? unmute([id]) : mute([id]))}
      >
        {isMuted ? "Unmute" : "Mute"}
      </Button>
    </li>
  );
}
