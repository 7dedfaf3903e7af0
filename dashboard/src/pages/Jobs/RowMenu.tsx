import { useLocation } from "wouter";
import { useVerbs, type Verb } from "../../bulk";
import { Icon, Menu, type MenuEntry } from "../../components";
import { copyText } from "../../components/clipboard";
import { shortId } from "../../format";
import { href, jobPath } from "../../shell/url";
import styles from "./Jobs.module.css";
import type { Job } from "./useJobList";

type Props = {
  job: Job;
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  onVerb: (verb: Verb) => void;
};

/** The actions of one row. A list has many rows, so that the menu is made only when it opens. */
export function RowMenu(props: Props) {
  if (props.isOpen) return <OpenMenu {...props} />;
  return (
    <button
      type="button"
      className={styles.menu}
      aria-label={labelOf(props.job)}
      aria-haspopup="menu"
      onClick={() => props.onOpenChange(true)}
    >
      <Icon name="dots" size={14} />
    </button>
  );
}

const labelOf = (job: Job) => `Actions of ${job.job_type} ${shortId(job.id)}`;

function OpenMenu({ job, isOpen, onOpenChange, onVerb }: Props) {
  const [, go] = useLocation();
  const verbs = useVerbs({ kind: "jobs", jobs: [job] });
  const items: MenuEntry[] = [
    { id: "open", label: "Open", icon: "arrow-right", onAction: () => go(jobPath(job.id)) },
    ...verbs.map((verb) => ({
      id: verb.id,
      label: verb.needs === null ? verb.label : `${verb.label} …`,
      icon: verb.icon,
      danger: verb.isDangerous,
      onAction: () => onVerb(verb),
    })),
    "line",
    {
      id: "same_type",
      label: `Only ${job.job_type}`,
      icon: "filter",
      onAction: () => go(href("/jobs", { job_type: job.job_type })),
    },
    {
      id: "copy",
      label: "Copy id",
      icon: "copy",
      onAction: () => void copyText(job.id),
    },
  ];
  return <Menu label={labelOf(job)} items={items} isOpen={isOpen} onOpenChange={onOpenChange} />;
}
