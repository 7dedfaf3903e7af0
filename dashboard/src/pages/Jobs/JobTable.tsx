import { memo } from "react";
import type { Verb } from "../../bulk";
import { Cell, Checkbox, cx, HeaderCell, Row, Table, TableBody, TableHead } from "../../components";
import { usePreferences } from "../../shell/preferences";
import { type Column, NameCell, StatusCell } from "./columns";
import styles from "./Jobs.module.css";
import { RowMenu } from "./RowMenu";
import type { Job } from "./useJobList";

type Props = {
  jobs: readonly Job[];
  columns: readonly Column[];
  /** Null: this person cannot act on jobs, so that there is nothing to select. */
  selected: ReadonlySet<string> | null;
  isAllSelected: boolean;
  currentId: string | null;
  menuId: string | null;
  onToggle: (id: string) => void;
  onToggleAll: (isSelected: boolean) => void;
  onMenu: (id: string | null) => void;
  onVerb: (verb: Verb, job: Job) => void;
};

export function JobTable({ jobs, columns, selected, isAllSelected, ...rest }: Props) {
  const { density } = usePreferences();
  const count = jobs.filter(({ id }) => selected?.has(id)).length;
  return (
    <Table label="Jobs" dense={density === "dense"}>
      <TableHead>
        {selected && (
          <HeaderCell>
            <Checkbox
              label="Select all loaded jobs"
              isSelected={isAllSelected || (count > 0 && count === jobs.length)}
              isIndeterminate={!isAllSelected && count > 0 && count < jobs.length}
              onChange={rest.onToggleAll}
            />
          </HeaderCell>
        )}
        <HeaderCell>Status</HeaderCell>
        <HeaderCell>Job</HeaderCell>
        {columns.map(({ id, name, isNumeric = false, isMinor = false }) => (
          <HeaderCell key={id} numeric={isNumeric} secondary={isMinor}>
            {name}
          </HeaderCell>
        ))}
        <HeaderCell hidden>Actions</HeaderCell>
      </TableHead>
      <TableBody>
        {jobs.map((job) => (
          <JobRow
            key={job.id}
            job={job}
            columns={columns}
            isSelected={selected && (isAllSelected || selected.has(job.id))}
            isCurrent={rest.currentId === job.id}
            isMenuOpen={rest.menuId === job.id}
            onToggle={rest.onToggle}
            onMenu={rest.onMenu}
            onVerb={rest.onVerb}
          />
        ))}
      </TableBody>
    </Table>
  );
}

type RowProps = Pick<Props, "columns" | "onToggle" | "onMenu" | "onVerb"> & {
  job: Job;
  isSelected: boolean | null;
  isCurrent: boolean;
  isMenuOpen: boolean;
};

// A page may have hundreds of rows, and an event changes one of them.
const JobRow = memo(function JobRow({ job, columns, isSelected, isCurrent, ...rest }: RowProps) {
  return (
    <Row
      selected={isSelected ?? false}
      current={isCurrent}
      data-job={job.id}
      className={styles.row}
    >
      {isSelected !== null && (
        <Cell control className={styles.check}>
          <Checkbox
            label={`Select ${job.job_type} ${job.id}`}
            isSelected={isSelected}
            onChange={() => rest.onToggle(job.id)}
          />
        </Cell>
      )}
      <Cell headline className={styles.status}>
        <StatusCell job={job} />
      </Cell>
      <Cell rowHeader className={styles.nameCell}>
        <NameCell job={job} />
      </Cell>
      {columns.map((column) => (
        <JobCell key={column.id} column={column} job={job} />
      ))}
      <Cell control className={styles.actions}>
        <RowMenu
          job={job}
          isOpen={rest.isMenuOpen}
          onOpenChange={(isOpen) => rest.onMenu(isOpen ? job.id : null)}
          onVerb={(verb) => rest.onVerb(verb, job)}
        />
      </Cell>
    </Row>
  );
});

function JobCell({ column, job }: { column: Column; job: Job }) {
  const { isCut = false, isMinor = false } = column;
  return (
    <Cell
      label={column.name}
      numeric={column.isNumeric ?? false}
      truncate={isCut}
      secondary={isMinor}
      className={cx(
        isCut ? styles.detail : styles.whole,
        column.isSelfEvident && styles.evident,
        column.isExtra && styles.extra,
        (isMinor || column.hasValue?.(job) === false) && styles.minor,
      )}
    >
      {column.cell(job)}
    </Cell>
  );
}
