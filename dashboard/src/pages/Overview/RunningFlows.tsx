import { useApi, useCan } from "../../api";
import {
  Card,
  Cell,
  HeaderCell,
  LinkText,
  Row,
  StateBar,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { count } from "../../format";
import { flowPath, href } from "../../shell/url";
import { Elapsed } from "../../time";
import { talliesOf } from "../Flow/progress";
import styles from "./Overview.module.css";

const MOST_SHOWN = 5;
const query = { query: { status: "running" as const, limit: MOST_SHOWN } };

/** The newest flows that have not ended; nothing if there are none. */
export function RunningFlows() {
  const found = useApi("/flows", query, { enabled: useCan("jobs:read") });
  const flows = found.data?.items ?? [];
  if (flows.length === 0) return null;
  return (
    <Card
      flush
      title="Running flows"
      actions={<LinkText href={href("/flows", { status: "running" })}>All running flows</LinkText>}
    >
      <Table label="Running flows" bare>
        <TableHead>
          <HeaderCell>Flow</HeaderCell>
          <HeaderCell>Completed</HeaderCell>
          <HeaderCell numeric>Failed</HeaderCell>
          <HeaderCell numeric>Running for</HeaderCell>
        </TableHead>
        <TableBody>
          {flows.map(({ id, name, counts, created_at }) => (
            <Row key={id}>
              <Cell rowHeader>
                <LinkText href={flowPath(id)}>{name}</LinkText>
              </Cell>
              <Cell label="Completed" wide className={styles.flowCell}>
                <span className={styles.flowProgress}>
                  <StateBar counts={talliesOf(counts)} />
                  <LinkText quiet href={href("/jobs", { flow: id })} className={styles.flowWords}>
                    {count(counts.completed)} of {count(counts.jobs)}
                  </LinkText>
                </span>
              </Cell>
              <Cell label="Failed" numeric>
                {counts.failed === 0 ? (
                  "—"
                ) : (
                  <LinkText
                    quiet
                    href={href("/jobs", { flow: id, status: "failed" })}
                    className={styles.bad}
                  >
                    {count(counts.failed)}
                  </LinkText>
                )}
              </Cell>
              <Cell label="Running for" numeric>
                <Elapsed since={created_at} />
              </Cell>
            </Row>
          ))}
        </TableBody>
      </Table>
    </Card>
  );
}
