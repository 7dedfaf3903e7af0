import { useQuery } from "@tanstack/react-query";
import { messageOf, request } from "../../api";
import type { Job } from "../../bulk";
import { Button, cx, LinkText, Notice, SkeletonLines } from "../../components";
import { type JobFilter, toQuery } from "../../filter";
import { count, plural, shortId } from "../../format";
import { jobPath } from "../../shell/url";
import { Time } from "../../time";
import styles from "./Failures.module.css";
import { byMessage, type MessageGroup } from "./fingerprint";

const MOST = 100;

type Props = {
  /** The jobs of the group. */
  filter: JobFilter;
  /** The window of the group: `the last hour`. */
  sinceWords: string;
  /** Changes when the group has changed. */
  version: string;
  /** Null: this person may not retry jobs. */
  onRetry: ((jobs: readonly Job[]) => void) | null;
};

/** The messages of the newest failures of one kind, without what differs from job to job. */
export function Messages({ filter, sinceWords, version, onRetry }: Props) {
  // Not by `useApi`: the row says when the group has changed, and other events need no read.
  const found = useQuery({
    queryKey: ["failed jobs", filter, version],
    queryFn: ({ signal }) =>
      request("get", "/jobs", {
        params: { query: { ...toQuery(filter), limit: MOST } },
        headers: { "Laneway-Large-Values": "omit" },
        signal,
      }),
    placeholderData: (before) => before,
    retry: false,
  });
  if (found.isPending) return <SkeletonLines count={2} />;
  if (found.isError) return <Notice kind="error" title={messageOf(found.error)} />;
  const { items, next_cursor } = found.data;
  const groups = byMessage(items);
  return (
    <div className={styles.messages}>
      <p className="muted">
        {plural(groups.length, "message")} of{" "}
        {next_cursor === null ? "" : `the newest ${count(items.length)} of `}
        the jobs that failed in {sinceWords}
      </p>
      <ul>
        {groups.map((group) => (
          <Message key={group.fingerprint} group={group} onRetry={onRetry} />
        ))}
      </ul>
    </div>
  );
}

function Message(props: { group: MessageGroup<Job>; onRetry: Props["onRetry"] }) {
  const { text, newest, jobs } = props.group;
  const retry = props.onRetry;
  return (
    <li>
      <span className={cx("numeric", styles.count)}>{count(jobs.length)}</span>
      <span className={styles.message}>{text || "No message"}</span>
      <span className={styles.newest}>
        <LinkText quiet href={jobPath(newest.id)} className={styles.job ?? ""}>
          {shortId(newest.id)}
        </LinkText>
        <span className={styles.at}>
          <Time at={newest.finished_at} />
        </span>
      </span>
      {retry && (
        <Button size="sm" variant="quiet" icon="retry" onPress={() => retry(jobs)}>
          Retry {count(jobs.length)}
        </Button>
      )}
    </li>
  );
}
