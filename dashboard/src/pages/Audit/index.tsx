import { useApiPages, useTopics } from "../../api";
import { Button, EmptyState, PageHeader, SkeletonRows } from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { AuditFilter } from "./AuditFilter";
import { AuditTable } from "./AuditTable";
import { useAuditFilter } from "./useAuditFilter";

/** Who did what, newest first. */
export default function Audit() {
  useTopics(["lanes"]);
  const { filter, query, isEmpty, setFilter } = useAuditFilter();
  const entries = useApiPages("/admin/audit", { query });
  return (
    <>
      <PageHeader
        title="Audit"
        subtitle="Who changed what, when and by which interface, and what was refused."
        actions={
          <Button
            icon="retry"
            isPending={entries.isFetching && !entries.isFetchingNextPage}
            onPress={() => void entries.refetch()}
          >
            Refresh
          </Button>
        }
      />
      <AuditFilter filter={filter} onChange={setFilter} />
      <ErrorNotice of={entries} />
      {entries.isPending && <SkeletonRows rows={10} columns="120px 1fr 1fr 1fr 80px" />}
      {entries.isSuccess &&
        (entries.items.length > 0 ? (
          <AuditTable entries={entries.items} isOutdated={entries.isPlaceholderData} />
        ) : (
          <EmptyState
            icon={isEmpty ? "history" : "search"}
            title={isEmpty ? "Nothing has been recorded yet" : "No entries match"}
            {...(!isEmpty && {
              action: <Button onPress={() => setFilter({})}>Show all entries</Button>,
            })}
          >
            {isEmpty && "Changes of jobs, lanes, limits, schedules and access appear here."}
          </EmptyState>
        ))}
      <MoreButton of={entries} />
    </>
  );
}
