import type { components } from "../../api";
import {
  Button,
  Cell,
  cx,
  HeaderCell,
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

type Failure = components["schemas"]["FailureOut"];

type Props = {
  failures: readonly Failure[];
  /** The seconds of one number of a trend. */
  bucketS: number;
  isOutdated: boolean;
  /** Null: this person may not retry jobs. */
  onRetry: ((filter: JobFilter) => void) | null;
};

export function FailureTable({ failures, bucketS, isOutdated, onRetry }: Props) {
  return (
    <div className={cx(isOutdated && styles.outdated)}>
      <Table label="Failures by job type and error">
        <TableHead>
          <HeaderCell>Error</HeaderCell>
          <HeaderCell>Job type</HeaderCell>
          <HeaderCell>Lane</HeaderCell>
          <HeaderCell numeric>Failed</HeaderCell>
          <HeaderCell>Trend</HeaderCell>
          <HeaderCell numeric>Last seen</HeaderCell>
          {onRetry && <HeaderCell hidden>Actions</HeaderCell>}
        </TableHead>
        <TableBody>
          {failures.map((failure) => (
            <FailureRow
              key={JSON.stringify([failure.lane, failure.job_type, failure.error_type])}
              failure={failure}
              bucketS={bucketS}
              onRetry={onRetry}
            />
          ))}
        </TableBody>
      </Table>
    </div>
  );
}

type RowProps = Pick<Props, "bucketS" | "onRetry"> & { failure: Failure };

function FailureRow({ failure, bucketS, onRetry }: RowProps) {
  const { error_type, job_type, lane, failures, trend } = failure;
  const filter: JobFilter = {
    status: "failed",
    job_type,
    ...(error_type !== null && { error_type }),
  };
  const list = href("/jobs", filter);
  return (
    <Row>
      <Cell rowHeader className={styles.error ?? ""}>
        <span className={styles.kind}>
          <LinkText href={list}>{error_type ?? "No error type"}</LinkText>
          <Example id={failure.example} />
        </span>
      </Cell>
      <Cell label="Job type">
        <LinkText quiet href={href("/jobs", { status: "failed", job_type })}>
          {job_type}
        </LinkText>
      </Cell>
      <Cell label="Lane">
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
        <Cell control>
          {error_type !== null && (
            <Button size="sm" icon="retry" onPress={() => onRetry(filter)}>
              Retry all
            </Button>
          )}
        </Cell>
      )}
    </Row>
  );
}
