import {
  Cell,
  HeaderCell,
  LinkText,
  Row,
  StateBar,
  StatusBadge,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { between, count, duration, shortId } from "../../format";
import { flowPath, href } from "../../shell/url";
import { Elapsed, Time } from "../../time";
import type { FlowSummary } from "../Flow/flowTypes";
import { talliesOf } from "../Flow/progress";
import styles from "./Flows.module.css";

/** One line per flow: how far it is, and how many of its jobs failed. */
export function FlowTable({ flows }: { flows: readonly FlowSummary[] }) {
  return (
    <Table label="Flows">
      <TableHead>
        <HeaderCell>Flow</HeaderCell>
        <HeaderCell>Status</HeaderCell>
        <HeaderCell>Completed</HeaderCell>
        <HeaderCell numeric>Failed</HeaderCell>
        <HeaderCell numeric>Duration</HeaderCell>
        <HeaderCell numeric>Submitted</HeaderCell>
        <HeaderCell>Submitted by</HeaderCell>
        <HeaderCell>Tags</HeaderCell>
      </TableHead>
      <TableBody>
        {flows.map((flow) => (
          <FlowRow key={flow.id} flow={flow} />
        ))}
      </TableBody>
    </Table>
  );
}

function FlowRow({ flow }: { flow: FlowSummary }) {
  const { id, counts } = flow;
  return (
    <Row>
      <Cell rowHeader>
        <LinkText href={flowPath(id)}>
          {flow.name} <span className={styles.id}>{shortId(id)}</span>
        </LinkText>
      </Cell>
      <Cell label="Status" headline>
        <StatusBadge status={flow.status} plain />
      </Cell>
      <Cell label="Completed" wide>
        <span className={styles.progress}>
          <StateBar counts={talliesOf(counts)} />
          <LinkText quiet href={href("/jobs", { flow: id })} className={styles.done}>
            {count(counts.completed)} of {count(counts.jobs)}
          </LinkText>
        </span>
      </Cell>
      <Cell label="Failed" numeric>
        {counts.failed === 0 ? (
          "—"
        ) : (
          <LinkText href={href("/jobs", { flow: id, status: "failed" })}>
            {count(counts.failed)}
          </LinkText>
        )}
      </Cell>
      <Cell label="Duration" numeric>
        {flow.finished_at === null ? (
          <Elapsed since={flow.created_at} asWords />
        ) : (
          duration(between(flow.created_at, flow.finished_at))
        )}
      </Cell>
      <Cell label="Submitted" numeric>
        <Time at={flow.created_at} />
      </Cell>
      <Cell label="Submitted by">{flow.created_by ?? "—"}</Cell>
      <Cell label="Tags" blank={flow.tags.length === 0}>
        <span className={styles.tags}>
          {flow.tags.map((tag) => (
            <LinkText key={tag} quiet href={href("/flows", { tag })}>
              {tag}
            </LinkText>
          ))}
        </span>
      </Cell>
    </Row>
  );
}
