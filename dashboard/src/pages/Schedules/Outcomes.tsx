import { Link } from "wouter";
import type { components } from "../../api";
import { Icon, type IconName } from "../../components";
import { absolute } from "../../format";
import { usePreferences } from "../../shell/preferences";
import { jobPath } from "../../shell/url";
import { Time } from "../../time";
import styles from "./Schedules.module.css";

type Slot = components["schemas"]["SlotOut"];

// By the end of the job; without one, by the outcome of the slot.
const LOOKS: Record<string, { icon: IconName; look: string | undefined }> = {
  completed: { icon: "check", look: styles.good },
  failed: { icon: "cross", look: styles.bad },
  missed: { icon: "warning", look: styles.bad },
  cancelled: { icon: "cancelled", look: styles.neutral },
  skipped: { icon: "chevron-right", look: styles.neutral },
};

/** The last slot in words, then the last ten, oldest first, each a link to its job. */
export function Outcomes({ slots }: { slots: Slot[] }) {
  const { zone } = usePreferences();
  const [last] = slots;
  if (last === undefined) return <span className={styles.detail}>none yet</span>;
  return (
    <div>
      <p className={styles.last}>
        {last.job_ended ?? last.outcome} <Time at={last.at} />
      </p>
      <ol className={styles.outcomes}>
        {slots.toReversed().map((slot) => {
          const word = slot.job_ended ?? slot.outcome;
          const { icon, look } = LOOKS[word] ?? { icon: "clock", look: styles.neutral };
          const words = `${absolute(slot.slot, zone)}: ${word}${slot.note ? `, ${slot.note}` : ""}`;
          const mark = <Icon name={icon} size={12} label={words} />;
          return (
            <li key={`${slot.slot} ${slot.at}`} className={look} title={words}>
              {slot.job_id === null ? mark : <Link href={jobPath(slot.job_id)}>{mark}</Link>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
