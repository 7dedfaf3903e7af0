import type { components } from "../../api";
import {
  Card,
  Cell,
  EmptyState,
  HeaderCell,
  LinkText,
  Row,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { count, duration } from "../../format";
import { href } from "../../shell/url";
import styles from "./Lane.module.css";
import { byType } from "./queue";

type Lane = components["schemas"]["LaneDetailOut"];

/** The due jobs of a lane by job type, and by priority within each. */
export function QueueDepth({ lane }: { lane: Lane }) {
  const types = byType(lane);
  const most = Math.max(1, ...types.map(({ depth }) => depth));
  return (
    <Card flush title="Queue" subtitle="Due jobs by job type and priority, highest first">
      {types.length === 0 ? (
        <EmptyState icon="success" title="Nothing waits">
          Due jobs of this lane appear here until a worker claims them.
        </EmptyState>
      ) : (
        <Table label="Queue by job type and priority" bare stacked={false}>
          <TableHead>
            <HeaderCell>Job type</HeaderCell>
            <HeaderCell numeric>Priority</HeaderCell>
            <HeaderCell numeric>Queued</HeaderCell>
            <HeaderCell hidden className={styles.share}>
              Share
            </HeaderCell>
            <HeaderCell numeric>Oldest</HeaderCell>
          </TableHead>
          <TableBody>
            {types.flatMap(({ jobType, rows }) =>
              rows.map((row, at) => (
                <Row key={`${jobType} ${row.priority}`}>
                  <Cell rowHeader={at === 0}>
                    {at === 0 && (
                      <LinkText
                        href={href("/jobs", {
                          status: "approved",
                          lane: lane.name,
                          job_type: jobType,
                        })}
                      >
                        {jobType}
                      </LinkText>
                    )}
                  </Cell>
                  <Cell numeric>{row.priority ?? "—"}</Cell>
                  <Cell numeric>{count(row.depth, row.depth_is_capped)}</Cell>
                  <Cell className={styles.share}>
                    <span
                      className={styles.bar}
                      style={{ width: `${Math.max(2, (100 * row.depth) / most)}%` }}
                    />
                  </Cell>
                  <Cell numeric>{duration(row.oldest_wait_s)}</Cell>
                </Row>
              )),
            )}
          </TableBody>
        </Table>
      )}
    </Card>
  );
}
