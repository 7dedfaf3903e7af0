import type { ReactNode } from "react";
import { Button, CodeBlock, EmptyState } from "../../components";
import { filterWords, isEmpty, type JobFilter } from "../../filter";

type Props = { filter: JobFilter; onClear: () => void; action?: ReactNode };

/** What stands in the place of the table: how to get jobs, or a filter that finds none. */
export function EmptyList({ filter, onClear, action }: Props) {
  if (isEmpty(filter)) {
    return (
      <EmptyState icon="job" title="No jobs yet" action={action}>
        <p>Every job that is submitted appears here, whether it waits, runs or has ended.</p>
        <CodeBlock label="command" text={`laneway jobs submit ingestion '{"path": "a.pdf"}'`} />
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon="search"
      title="No jobs match"
      action={<Button onPress={onClear}>Show all jobs</Button>}
    >
      There are no {filterWords(filter)}.
    </EmptyState>
  );
}
