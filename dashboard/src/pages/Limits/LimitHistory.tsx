import { useAction, useApiPages } from "../../api";
import { Dialog } from "../../components";
import { ChangeHistory } from "../../history";
import { useManagesEverything } from "../Lanes/useAccess";
import { LIMIT_WORDS } from "./limits";

/** The changes of a limit, also of one that was deleted. */
export function LimitHistory({ name, onClose }: { name: string; onClose: () => void }) {
  const path = { name };
  const pages = useApiPages("/admin/limits/{name}/history", { path, query: { limit: 10 } });
  const isManager = useManagesEverything();
  const restore = useAction("post", "/admin/limits/{name}/rollback", {
    done: ({ change }) =>
      change === null ? `Limit ${name} is in that state already` : `Limit ${name} is rolled back`,
  });
  return (
    <Dialog title={`History of limit ${name}`} size="lg" isOpen onClose={onClose}>
      <ChangeHistory
        pages={pages}
        words={LIMIT_WORDS}
        subject={`limit ${name}`}
        onRestore={
          isManager ? (to) => restore.confirm({ params: { path }, body: { to } }) : undefined
        }
      />
    </Dialog>
  );
}
