import type { components } from "../../api";
import {
  Cell,
  HeaderCell,
  IconButton,
  LinkText,
  Menu,
  type MenuEntry,
  Row,
  SlotBoxes,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { count, shortId } from "../../format";
import { href, jobPath } from "../../shell/url";
import { Elapsed } from "../../time";
import styles from "./Limits.module.css";
import { holdWords, otherHolders, rateWords } from "./limits";

type Limit = components["schemas"]["LimitStatusOut"];

type Props = {
  limits: Limit[];
  /** The job types that need a limit for their whole run. */
  typesOf: (limit: string) => string[];
  isManager: boolean;
  onEdit: (limit: Limit) => void;
  onDelete: (limit: Limit) => void;
  onHistory: (limit: Limit) => void;
};

/** The limits: how much is in use, who holds them, who waits for them. */
export function LimitTable({ limits, ...rest }: Props) {
  return (
    <Table label="Limits">
      <TableHead>
        <HeaderCell>Limit</HeaderCell>
        <HeaderCell>In use</HeaderCell>
        <HeaderCell>Scope</HeaderCell>
        <HeaderCell>Rate</HeaderCell>
        <HeaderCell numeric>Waiting</HeaderCell>
        <HeaderCell>Held by</HeaderCell>
        <HeaderCell>Needed by</HeaderCell>
        <HeaderCell hidden>Actions</HeaderCell>
      </TableHead>
      <TableBody>
        {limits.map((limit) => (
          <LimitRow key={limit.name} limit={limit} {...rest} />
        ))}
      </TableBody>
    </Table>
  );
}

function LimitRow({ limit, typesOf, ...rest }: Omit<Props, "limits"> & { limit: Limit }) {
  const types = typesOf(limit.name);
  return (
    <Row>
      <Cell rowHeader>{limit.name}</Cell>
      <Cell label="In use">
        <span title={holdWords(limit)}>
          <SlotBoxes
            used={limit.scope === "cluster" ? limit.running : limit.busiest}
            total={limit.max_concurrent}
          />
        </span>
      </Cell>
      <Cell label="Scope">
        {limit.scope}
        {limit.scope !== "cluster" && <div className={styles.detail}>{holdWords(limit)}</div>}
      </Cell>
      <Cell label="Rate">{rateWords(limit.rate_count, limit.rate_period_s) ?? "—"}</Cell>
      <Cell label="Waiting" numeric>
        {types.length === 1 ? (
          <LinkText href={href("/jobs", { status: "approved", job_type: types[0] })} quiet>
            {count(limit.waiting, limit.waiting_is_capped)}
          </LinkText>
        ) : (
          count(limit.waiting, limit.waiting_is_capped)
        )}
      </Cell>
      <Cell label="Held by" wide>
        <Holders limit={limit} />
      </Cell>
      <Cell label="Needed by" wide>
        <NeededBy types={types} />
      </Cell>
      <Cell control>
        <LimitActions limit={limit} {...rest} />
      </Cell>
    </Row>
  );
}

const MOST_JOBS = 5;

/** Who holds a limit: the jobs, the longest first, then processes outside of jobs. */
function Holders({ limit }: { limit: Limit }) {
  const { jobs, running } = limit;
  const others = otherHolders(limit);
  const shown = jobs.slice(0, MOST_JOBS);
  const more = jobs.length - shown.length;
  if (running === 0) return <span className="muted">nobody</span>;
  return (
    <ul className={styles.holders}>
      {shown.map((job) => (
        <li key={job.id}>
          <LinkText href={jobPath(job.id)}>{job.job_type}</LinkText>
          <span className={styles.id}>{shortId(job.id)}</span>
          <span className={styles.detail}>
            {job.held > 1 && `${job.held} times, `}
            {job.worker ?? shortId(job.claimed_by)}, <Elapsed since={job.claimed_at} />
          </span>
        </li>
      ))}
      {more > 0 && (
        <li>
          <LinkText href={href("/jobs", { status: "running" })}>{`${more} more jobs`}</LinkText>
        </li>
      )}
      {others.map((words) => (
        <li key={words}>{words}</li>
      ))}
    </ul>
  );
}

function NeededBy({ types }: { types: string[] }) {
  if (types.length === 0) return <span className="muted">no published type</span>;
  return (
    <span className={styles.types}>
      {types.map((name) => (
        <LinkText key={name} href={href("/jobs", { status: "approved", job_type: name })} quiet>
          {name}
        </LinkText>
      ))}
    </span>
  );
}

type ActionsProps = { limit: Limit } & Pick<
  Props,
  "isManager" | "onEdit" | "onDelete" | "onHistory"
>;

function LimitActions({ limit, isManager, onEdit, onDelete, onHistory }: ActionsProps) {
  const items: MenuEntry[] = [
    { id: "history", label: "History", icon: "history", onAction: () => onHistory(limit) },
    ...(isManager
      ? [
          "line" as const,
          {
            id: "delete",
            label: "Delete",
            icon: "trash" as const,
            danger: true,
            onAction: () => onDelete(limit),
          },
        ]
      : []),
  ];
  return (
    <span className={styles.actions}>
      {isManager && (
        <IconButton
          size="sm"
          icon="edit"
          label={`Edit limit ${limit.name}`}
          onPress={() => onEdit(limit)}
        />
      )}
      <Menu label={`Actions of limit ${limit.name}`} items={items} />
    </span>
  );
}
