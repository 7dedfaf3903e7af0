import { Card, cx, Icon, toneClass } from "../../components";
import { absolute, duration } from "../../format";
import { usePreferences } from "../../shell/preferences";
import { Elapsed, Time } from "../../time";
import type { Stage } from "./stages";
import styles from "./Timeline.module.css";

/** The stages of a job with how long each lasted. */
export function Timeline({ stages, total }: TimelineProps) {
  return (
    <Card title="Timeline" subtitle={total}>
      <ol className={styles.stages}>
        {stages.map((stage) => (
          <li key={stage.key} className={cx(styles.stage, toneClass(stage.tone))}>
            <span className={styles.mark}>
              <Icon name={stage.icon} size={13} />
            </span>
            <div className={styles.words}>
              <p className={styles.title}>{stage.title}</p>
              {stage.detail && <p className={styles.detail}>{stage.detail}</p>}
            </div>
            <StageTime stage={stage} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function StageTime({ stage }: { stage: Stage }) {
  const { zone } = usePreferences();
  if (!stage.isCurrent && stage.seconds === null) {
    return (
      <span className={styles.at}>
        <Time at={stage.at} />
      </span>
    );
  }
  return (
    <span className={styles.length} title={`since ${absolute(stage.at, zone)}`}>
      {stage.isCurrent ? <Elapsed since={stage.at} asWords /> : duration(stage.seconds)}
    </span>
  );
}

type TimelineProps = { stages: Stage[]; total: string | undefined };
