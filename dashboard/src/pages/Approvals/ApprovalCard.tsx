import { type components, covers, useApi, useCan, useMe } from "../../api";
import {
  Button,
  JsonView,
  Kbd,
  KeyValue,
  type KeyValueItem,
  LinkText,
  SkeletonLines,
  SlotBoxes,
} from "../../components";
import { count, duration, shortId } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { jobPath, lanePath } from "../../shell/url";
import { needsAnother } from "../Job/actionRules";
import { AnalysisWarnings, CostWords } from "./AnalysisSummary";
import styles from "./ApprovalCard.module.css";
import { analysisParts } from "./analysis";
import type { DecisionVerb } from "./DecisionDialog";
import { LastApproved } from "./LastApproved";

type Job = components["schemas"]["JobOut"];
type Detail = components["schemas"]["JobDetailOut"];
type Lane = components["schemas"]["LaneStatusOut"];

type Props = {
  job: Job;
  lane: Lane | undefined;
  /** How long jobs of this type ran lately. */
  runsForS: number | null | undefined;
  onDecide: (job: Detail, decision: DecisionVerb) => void;
};

/** One request: everything that an approver needs to decide. */
export function ApprovalCard({ job, lane, runsForS, onDecide }: Props) {
  const me = useMe();
  // The seal belongs to exactly these values, so both come from one response.
  const found = useApi("/jobs/{job_id}", { path: { job_id: job.id } });
  const detail = found.data;
  return (
    <>
      {detail ? (
        <Content job={detail} lane={lane} runsForS={runsForS} />
      ) : found.isError ? (
        <ErrorNotice of={found} />
      ) : (
        <SkeletonLines count={6} />
      )}
      {detail && covers(me, "jobs:approve", detail) && (
        <footer className={styles.decide}>
          {needsAnother(me, detail) ? (
            <p className={styles.another}>
              Needs another person: you requested it, and jobs of this type need two people.
            </p>
          ) : (
            <Button variant="primary" icon="check" onPress={() => onDecide(detail, "approve")}>
              Approve <Shortcut letter="A" />
            </Button>
          )}
          <Button icon="cross" onPress={() => onDecide(detail, "reject")}>
            Reject <Shortcut letter="R" />
          </Button>
        </footer>
      )}
    </>
  );
}

function Shortcut({ letter }: { letter: string }) {
  return (
    <span className={styles.shortcut} aria-hidden="true">
      <Kbd keys={letter} />
    </span>
  );
}

type ContentProps = { job: Detail } & Pick<Props, "lane" | "runsForS">;

function Content({ job, lane, runsForS }: ContentProps) {
  const { plan, cost, warnings } = analysisParts(job.analysis);
  const change = (
    <>
      <h3>Changed since the last approved run</h3>
      <LastApproved job={job} />
    </>
  );
  // A plan fills the second column; without one, the change does.
  return (
    <div className={styles.content}>
      <section className={styles.part}>
        <h3>Payload</h3>
        <JsonView label={`Payload of ${shortId(job.id)}`} value={job.payload} maxHeight="320px" />
        {plan !== null && change}
      </section>
      <section className={styles.part}>
        <AnalysisWarnings warnings={warnings} />
        <KeyValue items={useFacts(job, cost, lane, runsForS)} />
        {plan === null && change}
        {plan !== null && (
          <>
            <h3>Plan</h3>
            <JsonView label={`Plan of ${shortId(job.id)}`} value={plan} maxHeight="240px" />
          </>
        )}
      </section>
    </div>
  );
}

function useFacts(
  job: Detail,
  cost: string | null,
  lane: Lane | undefined,
  runsForS: number | null | undefined,
): KeyValueItem[] {
  const seesLanes = useCan("workers:view");
  const items: (KeyValueItem | false)[] = [
    {
      name: "Job",
      value: (
        <LinkText href={jobPath(job.id)} className={styles.id ?? ""}>
          {shortId(job.id)}
        </LinkText>
      ),
    },
    { name: "Cost", value: <CostWords cost={cost} /> },
    {
      name: "Duration",
      value: runsForS == null ? "no earlier runs" : `about ${duration(runsForS)}`,
    },
    {
      name: "Lane now",
      value: (
        <span className={styles.lane}>
          {seesLanes ? <LinkText href={lanePath(job.lane)}>{job.lane}</LinkText> : job.lane}
          {lane && (
            <>
              <SlotBoxes used={lane.slots_used} total={lane.max_slots} />
              <span>{count(lane.depth, lane.depth_is_capped)} queued</span>
            </>
          )}
        </span>
      ),
    },
    { name: "Priority", value: job.priority },
    job.two_person && { name: "Rule", value: "two people" },
    job.workspace !== "default" && { name: "Workspace", value: job.workspace },
    job.tags.length > 0 && { name: "Tags", value: job.tags.join(", ") },
  ];
  return items.filter((item) => item !== false);
}
