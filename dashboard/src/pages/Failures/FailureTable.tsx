import { Fragment, useState } from "react";
import type { components } from "../../api";
import type { BulkTarget } from "../../bulk";
import {
  Button,
  Cell,
  cx,
  HeaderCell,
  IconButton,
  LinkText,
  Row,
  Sparkline,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import type { JobFilter } from "../../filter";
import { count, duration } from "../../format";
import { href, lanePath } from "../../shell/url";
import { Time } from "../../time";
import { Example } from "./Example";
import styles from "./Failures.module.css";
import { Messages } from "./Messages";

type Failure = components["schemas"]["FailureOut"];

type Props = {
  failures: readonly Failure[];
  /** The seconds of one number of a trend. */
  bucketS: number;
  isOutdated: boolean;
  /** The length of the window, as a filter takes it. */
  since: string;
  /** The same in words. */
  sinceWords: string;
  /** Null: this person may not retry jobs. */
  onRetry: ((target: BulkTarget) => void) | null;
};

export function FailureTable({ failures, isOutdated, ...common }: Props) {
  const { onRetry } = common;
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return (
    <div className={cx(styles.kinds, isOutdated && styles.outdated)}>
      <Table label="Failures by job type and error">
        <TableHead>
          <HeaderCell hidden>Messages</HeaderCell>
          <HeaderCell>Error</HeaderCell>
          <HeaderCell>Job type</HeaderCell>
          <HeaderCell>Lane</HeaderCell>
          <HeaderCell numeric>Failed</HeaderCell>
          <HeaderCell>Trend</HeaderCell>
          <HeaderCell numeric>Last seen</HeaderCell>
          {onRetry && <HeaderCell hidden>Actions</HeaderCell>}
        </TableHead>
        <TableBody>
          {failures.map((failure) => {
            const key = JSON.stringify([failure.lane, failure.job_type, failure.error_type]);
            return (
              <FailureRow
                key={key}
                failure={failure}
                isOpen={open.has(key)}
                onToggle={() => toggle(key)}
                {...common}
              />
            );
          })}
        </TableBody>
      </Table>
    </div>
  );
}

type RowProps = Omit<Props, "failures" | "isOutdated"> & {
  failure: Failure;
  isOpen: boolean;
  onToggle: () => void;
};

function FailureRow(props: RowProps) {
  const { failure, bucketS, since, sinceWords, isOpen, onToggle, onRetry } = props;
  const { error_type, job_type, lane, failures, trend } = failure;
  const id = `messages-${failure.example}`;
  const filter: JobFilter = {
    status: "failed",
    job_type,
    lane,
    ended_since: since,
    ...(error_type !== null && { error_type }),
  };
  const list = href("/jobs", filter);
  const row = (
    <Row className={styles.row}>
      <Cell control className={styles.toggle ?? ""}>
        <IconButton
          icon={isOpen ? "chevron-down" : "chevron-right"}
          label={isOpen ? "Hide messages" : "Show messages"}
          size="sm"
          aria-expanded={isOpen}
          {...(isOpen && { "aria-controls": id })}
          onPress={onToggle}
        />
      </Cell>
      <Cell rowHeader className={styles.error ?? ""}>
        <span className={styles.kind}>
          <LinkText href={list}>{error_type ?? "No error type"}</LinkText>
          <Example id={failure.example} />
        </span>
      </Cell>
      <Cell label="Job type" className={styles.name ?? ""}>
        <LinkText quiet href={href("/jobs", { status: "failed", job_type, ended_since: since })}>
          {job_type}
        </LinkText>
      </Cell>
      <Cell label="Lane" className={styles.name ?? ""}>
        <LinkText quiet href={lanePath(lane)}>
          {lane}
        </LinkText>
      </Cell>
      <Cell label="Failed" numeric>
        <LinkText href={list}>{count(failures)}</LinkText>
      </Cell>
      <Cell label="Trend">
        <Sparkline
          values={trend}
          tone="failed"
          label={`Failures per ${duration(bucketS)}: ${trend.at(-1) ?? 0} now, ${Math.max(0, ...trend)} at most`}
        />
      </Cell>
      <Cell label="Last seen" numeric className={styles.whole ?? ""}>
        <Time at={failure.last_at} />
      </Cell>
      {onRetry && (
        <Cell control blank={error_type === null} className={styles.retry ?? ""}>
          {error_type !== null && (
            <Button size="sm" icon="retry" onPress={() => onRetry({ kind: "filter", filter })}>
              Retry all
            </Button>
          )}
        </Cell>
      )}
    </Row>
  );
  return (
    <Fragment>
      {row}
      {isOpen && (
        <tr className={styles.messagesRow}>
          <td colSpan={onRetry ? 8 : 7} id={id}>
            <Messages
              filter={filter}
              sinceWords={sinceWords}
              version={`${failures} ${failure.last_at}`}
              onRetry={onRetry && ((jobs) => onRetry({ kind: "jobs", jobs }))}
            />
          </td>
        </tr>
      )}
    </Fragment>
  );
}
