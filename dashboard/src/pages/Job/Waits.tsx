import type { components } from "../../api";
import { Card, Cell, HeaderCell, Row, Table, TableBody, TableHead } from "../../components";
import { plural } from "../../format";
import { Time } from "../../time";

type HandlerWait = components["schemas"]["HandlerWaitOut"];

/** The waits that the handler of a job asked for. */
export function Waits({ waits }: { waits: HandlerWait[] }) {
  if (waits.length === 0) return null;
  return (
    <Card
      title="Waits"
      subtitle={`${plural(waits.length, "wait")}; the handler meets those that ended done`}
      flush
    >
      <Table label="Waits of the handler" bare dense stacked={false}>
        <TableHead>
          <HeaderCell>Wait</HeaderCell>
          <HeaderCell>For</HeaderCell>
          <HeaderCell numeric>Asked</HeaderCell>
          <HeaderCell numeric>Ended</HeaderCell>
          <HeaderCell numeric>Event sent</HeaderCell>
        </TableHead>
        <TableBody>
          {waits.map((wait) => (
            <Row key={wait.name}>
              <Cell rowHeader>{wait.name}</Cell>
              <Cell label="For">{subject(wait)}</Cell>
              <Cell label="Asked" numeric>
                <Time at={wait.asked_at} />
              </Cell>
              <Cell label="Ended" numeric>
                {wait.ended_at !== null && <Time at={wait.ended_at} />}
              </Cell>
              <Cell label="Event sent" numeric>
                {wait.sent_at !== null && <Time at={wait.sent_at} />}
              </Cell>
            </Row>
          ))}
        </TableBody>
      </Table>
    </Card>
  );
}

function subject({ kind, jobs, event, key, event_id, sent_by, ended_at }: HandlerWait): string {
  if (kind === "sleep") return "a sleep";
  if (kind !== "event") return plural(jobs ?? 0, "sub-job");
  const name = `event ${event}${key === null ? "" : `, key ${key}`}`;
  if (ended_at !== null && event_id === null) return `${name}: timed out`;
  return sent_by === null ? name : `${name}, sent by ${sent_by}`;
}
