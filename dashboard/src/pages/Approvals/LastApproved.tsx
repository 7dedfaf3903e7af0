import { type components, useApi } from "../../api";
import { JsonDiff, LinkText, SkeletonLines } from "../../components";
import { shortId } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { jobPath } from "../../shell/url";
import { Time } from "../../time";
import styles from "./ApprovalCard.module.css";

type Job = components["schemas"]["JobDetailOut"];

/** What changed since the last job of this type that was approved. */
export function LastApproved({ job }: { job: Job }) {
  const found = useApi("/jobs", {
    query: { job_type: job.job_type, was_approved: true, limit: 1 },
  });
  if (found.isPending) return <SkeletonLines count={2} />;
  if (found.isError) return <ErrorNotice of={found} />;
  const last = found.data.items[0];
  if (!last) return <p className={styles.note}>No job of this type was approved before.</p>;
  return (
    <>
      <p className={styles.note}>
        Compared with{" "}
        <LinkText href={jobPath(last.id)} className={styles.other}>
          {shortId(last.id)}
        </LinkText>
        , approved by {last.approved_by} <Time at={last.approved_at} />
      </p>
      <JsonDiff before={last.payload} after={job.payload} sameWords="The payload is the same." />
    </>
  );
}
