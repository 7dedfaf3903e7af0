import { useState } from "react";
import { type components, useCan } from "../../api";
import { BulkDialog, verbOf } from "../../bulk";
import { Button, Menu } from "../../components";
import styles from "./Approvals.module.css";

type Job = components["schemas"]["JobOut"];

/** Approve all requests of one job type; different types are never decided together. */
export function ApproveMany({ jobs }: { jobs: Job[] }) {
  const isApprover = useCan("jobs:approve");
  const [jobType, setJobType] = useState<string | null>(null);
  const types = repeatedTypes(jobs);
  const dialog = jobType !== null && (
    <BulkDialog
      verb={verbOf("approve")}
      target={{ kind: "filter", filter: { status: "awaiting_approval", job_type: jobType } }}
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

function repeatedTypes(jobs: Job[]): string[] {
  const names = jobs.map(({ job_type }) => job_type);
  return [...new Set(names)].filter((name) => names.filter((each) => each === name).length > 1);
}
