import { useApiPages, useTopics } from "../../api";
import { Chip, EmptyState, PageHeader, SkeletonRows, Tabs, TypedField } from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { href, useUrlValue } from "../../shell/url";
import styles from "./Flows.module.css";
import { FlowTable } from "./FlowTable";

const STATES = [
  { id: null, label: "All" },
  { id: "running", label: "Running" },
  { id: "failed", label: "Failed" },
  { id: "completed", label: "Completed" },
  { id: "cancelled", label: "Cancelled" },
] as const;

/** Jobs that were submitted together, the newest flow first. */
export default function Flows() {
  useTopics(["jobs"]);
  const [wanted] = useUrlValue("status");
  const [tag, setTag] = useUrlValue("tag");
  const [name, setName] = useUrlValue("name");
  const status = STATES.find(({ id }) => id === wanted)?.id ?? null;
  const flows = useApiPages("/flows", {
    query: { limit: 50, ...(status && { status }), ...(tag && { tag }), ...(name && { name }) },
  });
  const isFiltered = status !== null || tag !== null || name !== null;
  return (
    <>
      <PageHeader
        title="Flows"
        subtitle="Jobs that were submitted together, each after the jobs it needs."
      />
      <Tabs
        label="Status"
        items={STATES.map(({ id, label }) => ({
          href: href("/flows", { status: id, tag, name }),
          label,
          isCurrent: id === status,
        }))}
        tools={
          <TypedField
            label="Name of the flow"
            hideLabel
            placeholder="Filter by name"
            value={name ?? ""}
            onApply={setName}
          />
        }
      />
      {tag && (
        <div className={styles.chips}>
          <Chip name="tag" onRemove={() => setTag(null)}>
            {tag}
          </Chip>
        </div>
      )}
      <ErrorNotice of={flows} />
      {flows.isPending && <SkeletonRows rows={6} columns="2fr 1fr 2fr 1fr 1fr" />}
      {flows.data && flows.items.length === 0 && (
        <EmptyState
          icon={isFiltered ? "search" : "flow"}
          title={
            flows.hasNextPage
              ? "None among the newest flows"
              : isFiltered
                ? "No flows match"
                : "No flows yet"
          }
        >
          {flows.hasNextPage ? (
            "The search stopped before the oldest flows: load more to continue it."
          ) : isFiltered ? (
            name !== null && "A name must match as a whole."
          ) : (
            <>
              A flow is made of jobs that wait for each other:{" "}
              <code>async with lw.flow("nightly")</code> in Python, or <code>POST /flows</code>.
            </>
          )}
        </EmptyState>
      )}
      {flows.items.length > 0 && <FlowTable flows={flows.items} />}
      <MoreButton of={flows} />
    </>
  );
}
