import { Link } from "wouter";
import { useApi } from "../../api";
import { Icon, type IconName, Skeleton } from "../../components";
import { jobPath } from "../../shell/url";
import styles from "./Schedules.module.css";

const LOOKS: Record<string, { icon: IconName; look: string | undefined }> = {
  submitted: { icon: "check", look: styles.good },
  failed: { icon: "cross", look: styles.bad },
  skipped: { icon: "chevron-right", look: styles.neutral },
};

/** The last ten slots, oldest first, each a link to its job. */
export function Outcomes({ name }: { name: string }) {
  const params = { path: { name }, query: { limit: 10 } };
  const slots = useApi("/admin/schedules/{name}/slots", params);
  if (slots.data === undefined) return <Skeleton width={160} height={18} />;
  if (slots.data.items.length === 0) return <span className={styles.detail}>none yet</span>;
  return (
    <ol className={styles.outcomes}>
      {slots.data.items.toReversed().map((slot) => {
        const { icon, look } = LOOKS[slot.outcome] ?? { icon: "clock", look: styles.neutral };
        const words = `${slot.slot}: ${slot.outcome}${slot.note ? `, ${slot.note}` : ""}`;
        const mark = <Icon name={icon} size={12} label={words} />;
        return (
          <li key={`${slot.slot} ${slot.at}`} className={look} title={words}>
            {slot.job_id === null ? mark : <Link href={jobPath(slot.job_id)}>{mark}</Link>}
          </li>
        );
      })}
    </ol>
  );
}
