import type { components } from "../../api";
import {
  Cell,
  HeaderCell,
  LinkText,
  Row,
  SlotBoxes,
  Sparkline,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { count, duration, percent } from "../../format";
import { href, lanePath } from "../../shell/url";
import { LaneActions } from "../Lanes/LaneActions";
import { LaneState } from "../Lanes/LaneState";
import { type LaneNumbers, rateWords } from "./laneNumbers";
import styles from "./Overview.module.css";

type Lane = components["schemas"]["LaneStatusOut"];
type Props = { lanes: Lane[]; isPaused: boolean; numbersOf: (lane: string) => LaneNumbers };

/** The lanes: who uses the slots, who waits. Every number links to the list it counts. */
export function LaneTable({ lanes, isPaused, numbersOf }: Props) {
  return (
    <Table label="Lanes">
      <TableHead>
        <HeaderCell>Lane</HeaderCell>
        <HeaderCell>Slots</HeaderCell>
        <HeaderCell numeric>Queued</HeaderCell>
        <HeaderCell numeric>Oldest wait</HeaderCell>
        <HeaderCell numeric>Done/min</HeaderCell>
        <HeaderCell numeric secondary>
          Run p95
        </HeaderCell>
        <HeaderCell numeric>Failed</HeaderCell>
        <HeaderCell>Last 30 min</HeaderCell>
        <HeaderCell>State</HeaderCell>
        <HeaderCell hidden>Actions</HeaderCell>
      </TableHead>
      <TableBody>
        {lanes.map((lane) => (
          <LaneRow key={lane.name} lane={lane} isPaused={isPaused} numbers={numbersOf(lane.name)} />
        ))}
      </TableBody>
    </Table>
  );
}

function LaneRow(props: { lane: Lane; isPaused: boolean; numbers: LaneNumbers }) {
  const { lane, isPaused, numbers } = props;
  const { name } = lane;
  const jobs = (status: string) => href("/jobs", { status, lane: name });
  return (
    <Row brief={lane.slots_used === 0 && lane.depth === 0 && numbers.ended === 0}>
      <Cell rowHeader>
        <LinkText href={lanePath(name)} className={styles.name}>
          {name}
        </LinkText>
      </Cell>
      <Cell label="Slots" className={styles.boxes}>
        <LinkText href={jobs("running")} quiet>
          <SlotBoxes used={lane.slots_used} total={lane.max_slots} />
        </LinkText>
      </Cell>
      <Cell label="Queued" numeric>
        <LinkText href={jobs("approved")} quiet className={lane.depth === 0 ? "muted" : undefined}>
          {count(lane.depth, lane.depth_is_capped)}
        </LinkText>
      </Cell>
      <Cell label="Oldest wait" numeric>
        {lane.oldest_wait_s === null ? (
          "—"
        ) : (
          <LinkText href={jobs("approved")} quiet>
            {duration(lane.oldest_wait_s)}
          </LinkText>
        )}
      </Cell>
      <Cell label="Done/min" numeric>
        <LinkText
          href={jobs("completed")}
          quiet
          className={numbers.donePerMinute ? undefined : "muted"}
        >
          {rateWords(numbers.donePerMinute)}
        </LinkText>
      </Cell>
      <Cell label="Run p95" numeric secondary>
        {numbers.runP95S === null ? (
          "—"
        ) : (
          <LinkText href={jobs("completed")} quiet>
            {duration(numbers.runP95S)}
          </LinkText>
        )}
      </Cell>
      <Cell label="Failed" numeric>
        {numbers.ended === 0 ? (
          "—"
        ) : (
          <LinkText
            href={href("/failures", { lane: name })}
            quiet
            className={isFailing(numbers) ? styles.bad : undefined}
          >
            {percent(numbers.failed, numbers.ended)}
          </LinkText>
        )}
      </Cell>
      <Cell label="Last 30 min" blank={numbers.spark.every((done) => done === 0)}>
        <Sparkline values={numbers.spark} label={sparkWords(numbers)} />
      </Cell>
      <Cell label="State" headline>
        <LaneState lane={lane} isPaused={isPaused} />
      </Cell>
      <Cell control>
        <LaneActions lane={lane} />
      </Cell>
    </Row>
  );
}

// Below, a failure is an exception.
const FAILING_SHARE = 0.05;

function isFailing({ failed, ended }: LaneNumbers): boolean {
  return failed > 0 && failed / ended >= FAILING_SHARE;
}

function sparkWords({ spark }: LaneNumbers): string {
  if (spark.length === 0) return "Completed per minute: not known";
  const most = Math.max(0, ...spark);
  return `Completed per minute: ${spark.at(-1) ?? 0} in the last one, ${most} at most`;
}
