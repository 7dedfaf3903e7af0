import { useState } from "react";
import { type components, useAction, useApi, useTopics } from "../../api";
import { Button, ConfirmDialog, EmptyState, PageHeader, SkeletonRows } from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { useJobTypes } from "../Jobs/useJobTypes";
import { useManagesEverything, useSeesEverything } from "../Lanes/useAccess";
import { LimitDialog } from "./LimitDialog";
import { LimitHistory } from "./LimitHistory";
import { LimitTable } from "./LimitTable";

type Limit = components["schemas"]["LimitStatusOut"];
type Open = { what: "new" } | { what: "edit" | "delete" | "history"; limit: Limit };

/** Resources that jobs share: who holds them, who waits for them. */
export default function Limits() {
  useTopics(["jobs"]);
  const isViewer = useSeesEverything();
  const isManager = useManagesEverything();
  const limits = useApi("/admin/limits", { query: { limit: 200 } }, { enabled: isViewer });
  const { types } = useJobTypes();
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const typesOf = (limit: string) =>
    types.filter((type) => type.limits.includes(limit)).map(({ name }) => name);
  const newLimit = (
    <Button variant="primary" icon="plus" onPress={() => setOpen({ what: "new" })}>
      New limit
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Limits"
        subtitle="Bounds on resources that jobs of any lane share, such as an API or a GPU."
        actions={isManager && newLimit}
      />
      <ErrorNotice of={limits} />
      {!isViewer && (
        <EmptyState icon="lock" title="Limits belong to all lanes">
          Your role covers some lanes only.
        </EmptyState>
      )}
      {isViewer && limits.isPending && (
        <SkeletonRows rows={3} columns="1fr 1fr 80px 80px 80px 2fr" />
      )}
      {limits.data?.items.length === 0 && (
        <EmptyState icon="limit" title="No limits" action={isManager && newLimit}>
          A handler asks for a limit with <code>limits=["openai"]</code> for its whole run, or with{" "}
          <code>ctx.limit("openai")</code> for one call.
        </EmptyState>
      )}
      {limits.data && limits.data.items.length > 0 && (
        <LimitTable
          limits={limits.data.items}
          typesOf={typesOf}
          isManager={isManager}
          onEdit={(limit) => setOpen({ what: "edit", limit })}
          onDelete={(limit) => setOpen({ what: "delete", limit })}
          onHistory={(limit) => setOpen({ what: "history", limit })}
        />
      )}
      {open?.what === "new" && <LimitDialog limit={null} onClose={close} />}
      {open?.what === "edit" && <LimitDialog limit={open.limit} onClose={close} />}
      {open?.what === "history" && <LimitHistory name={open.limit.name} onClose={close} />}
      {open?.what === "delete" && <DeleteLimit limit={open.limit} onClose={close} />}
    </>
  );
}

function DeleteLimit({ limit, onClose }: { limit: Limit; onClose: () => void }) {
  const remove = useAction("delete", "/admin/limits/{name}", {
    done: `Limit ${limit.name} is deleted`,
  });
  return (
    <ConfirmDialog
      isOpen
      danger
      title={`Delete limit ${limit.name}?`}
      confirmLabel="Delete"
      onClose={onClose}
      onConfirm={() => remove.confirm({ params: { path: { name: limit.name } } })}
    >
      <p>Jobs are no longer bounded by it. A limit that a job type needs cannot be deleted.</p>
    </ConfirmDialog>
  );
}
