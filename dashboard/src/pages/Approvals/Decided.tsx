import { useApi, useCan } from "../../api";
import {
  Badge,
  Cell,
  EmptyState,
  HeaderCell,
  type IconName,
  LinkText,
  Row,
  SkeletonRows,
  StatusBadge,
  Table,
  TableBody,
  TableHead,
  type Tone,
} from "../../components";
import { shortId } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { href, jobPath } from "../../shell/url";
import { Time } from "../../time";
import styles from "./Approvals.module.css";
import { type Decided as Decision, decidedJobs } from "./decided";

const LOOKS: Record<Decision["decision"], { words: string; tone: Tone; icon: IconName }> = {
  approved: { words: "Approved", tone: "completed", icon: "check" },
  rejected: { words: "Rejected", tone: "failed", icon: "cross" },
  expired: { words: "Expired", tone: "cancelled", icon: "clock" },
};

/** Recent decisions, of people and of policies. */
export function Decided() {
  const seesAudit = useCan("audit:read");
  const approved = useApi("/jobs", { query: { was_approved: true, limit: 100 } }, { small: true });
  const refused = useApi(
    "/jobs",
    { query: { status: "cancelled", was_approved: false, limit: 100 } },
    { small: true },
  );
  if (approved.isPending || refused.isPending) return <SkeletonRows />;
  if (approved.isError) return <ErrorNotice of={approved} />;
  if (refused.isError) return <ErrorNotice of={refused} />;
  const decided = decidedJobs([...(approved.data?.items ?? []), ...(refused.data?.items ?? [])]);
  if (decided.length === 0) {
    return (
      <EmptyState icon="history" title="No recent decisions">
        Approvals, rejections and expiries of the newest jobs appear here.
      </EmptyState>
    );
  }
  return (
    <>
      <Table label="Recent decisions">
        <TableHead>
          <HeaderCell>Decision</HeaderCell>
          <HeaderCell>Job</HeaderCell>
          <HeaderCell>Requested by</HeaderCell>
          <HeaderCell>Decided by</HeaderCell>
          <HeaderCell>Reason</HeaderCell>
          <HeaderCell numeric>Decided</HeaderCell>
          <HeaderCell>Job is now</HeaderCell>
        </TableHead>
        <TableBody>
          {decided.map((each) => (
            <DecidedRow key={each.job.id} {...each} />
          ))}
        </TableBody>
      </Table>
      <p className={styles.note}>
        Decisions about the newest jobs.
        {seesAudit && (
          <>
            {" "}
            <LinkText href={href("/audit", { kind: "job" })}>
              All decisions are in the audit.
            </LinkText>
          </>
        )}
      </p>
    </>
  );
}

function DecidedRow({ job, decision, by, reason, at }: Decision) {
  const { words, tone, icon } = LOOKS[decision];
  return (
    <Row>
      <Cell label="Decision" headline>
        <Badge tone={tone} icon={icon}>
          {words}
        </Badge>
      </Cell>
      <Cell label="Job" rowHeader>
        <LinkText href={jobPath(job.id)}>
          {job.job_type} <code>{shortId(job.id)}</code>
        </LinkText>
      </Cell>
      <Cell label="Requested by">{job.created_by ?? "—"}</Cell>
      <Cell label="Decided by">{by ?? "—"}</Cell>
      <Cell label="Reason" wide>
        {reason ?? "—"}
      </Cell>
      <Cell label="Decided" numeric>
        <Time at={at} />
      </Cell>
      <Cell label="Job is now">
        <StatusBadge status={job.status} label={job.label} plain />
      </Cell>
    </Row>
  );
}
