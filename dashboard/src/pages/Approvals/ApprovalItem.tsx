import { type ReactNode, useId } from "react";
import type { components } from "../../api";
import { Icon } from "../../components";
import { shortId } from "../../format";
import { Time } from "../../time";
import styles from "./ApprovalItem.module.css";
import { analysisParts } from "./analysis";

type Props = {
  job: components["schemas"]["JobOut"];
  isOpen: boolean;
  onToggle: () => void;
  /** Everything about the request, shown while it is open. */
  children: ReactNode;
};

/** One request as a line that opens: its type, cost, requester and expiry. */
export function ApprovalItem({ job, isOpen, onToggle, children }: Props) {
  const id = useId();
  const { cost } = analysisParts(job.analysis);
  return (
    <article
      className={styles.item}
      data-job={job.id}
      data-open={isOpen || undefined}
      aria-label={`${job.job_type} ${shortId(job.id)}`}
    >
      <h2 className={styles.heading}>
        <button
          type="button"
          className={styles.line}
          aria-expanded={isOpen}
          aria-keyshortcuts="A R"
          {...(isOpen && { "aria-controls": id })}
          onClick={onToggle}
        >
          <Icon name={isOpen ? "chevron-down" : "chevron-right"} />
          <span className={styles.name}>
            <b>{job.job_type}</b> <code className={styles.id}>{shortId(job.id)}</code>
          </span>
          <span className={styles.cost}>{cost ?? "not estimated"}</span>
          <span className={styles.who}>
            {job.created_by ?? "somebody unknown"}, <Time at={job.created_at} />
          </span>
          <span className={styles.expiry}>
            {job.expires_at ? (
              <>
                expires <Time at={job.expires_at} />
              </>
            ) : (
              "does not expire"
            )}
          </span>
        </button>
      </h2>
      {isOpen && (
        <div id={id} className={styles.body}>
          {children}
        </div>
      )}
    </article>
  );
}
