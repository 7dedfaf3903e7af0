import { useState } from "react";
import { type components, useCan } from "../../api";
import { BulkDialog, verbOf } from "../../bulk";
import { Button, Menu } from "../../components";
import { count, plural } from "../../format";
import styles from "./Approvals.module.css";
import { totalCost } from "./analysis";

type Job = components["schemas"]["JobOut"];

type Props = {
  jobs: Job[];
  /** More requests wait than these. */
  isMore: boolean;
};

/** Approve all requests of one job type; different types are never decided together. */
export function ApproveMany({ jobs, isMore }: Props) {
  const isApprover = useCan("jobs:approve");
  const [jobType, setJobType] = useState<string | null>(null);
  const types = repeatedTypes(jobs);
  const dialog = jobType !== null && (
    <BulkDialog
      verb={verbOf("approve")}
      target={{ kind: "filter", filter: { status: "awaiting_approval", job_type: jobType } }}
      details={<TotalCost jobs={jobs.filter((job) => job.job_type === jobType)} isMore={isMore} />}
      onClose={() => setJobType(null)}
    />
  );
  if (!isApprover || (types.length === 0 && !dialog)) return null;
  return (
    <div className={styles.tools}>
      <Menu
        label="Approve all requests of one type"
        trigger={
          <Button size="sm" iconEnd="chevron-down">
            Approve all of one type
          </Button>
        }
        items={types.map((name) => ({ id: name, label: name, onAction: () => setJobType(name) }))}
      />
      {dialog}
    </div>
  );
}

function TotalCost({ jobs, isMore }: Props) {
  const { words, unknown } = totalCost(jobs.map(({ analysis }) => analysis));
  const which = isMore ? `The ${count(jobs.length)} that are listed cost` : "They cost";
  return (
    <p>
      {words === "" ? (
        "Their cost is not estimated."
      ) : (
        <>
          {which} <strong>{words}</strong> in all
          {unknown > 0 &&
            `, without ${plural(unknown, "job")} that ${unknown === 1 ? "has" : "have"} no estimate`}
          .
        </>
      )}
    </p>
  );
}

function repeatedTypes(jobs: Job[]): string[] {
  const names = jobs.map(({ job_type }) => job_type);
  return [...new Set(names)].filter((name) => names.filter((each) => each === name).length > 1);
}
