import { useAction, useApiPages } from "../../api";
import { ChangeHistory } from "../../history";
import { useManagesEverything } from "../Lanes/useAccess";
import { LANE_WORDS } from "./settings";

/** The changes of a lane; going back needs all lanes, because job types may move. */
export function LaneHistory({ name }: { name: string }) {
  const path = { name };
  const pages = useApiPages("/admin/workers/lanes/{name}/history", {
    path,
    query: { limit: 10 },
  });
  const isManager = useManagesEverything();
  const restore = useAction("post", "/admin/workers/lanes/{name}/rollback", {
    done: ({ change }) =>
      change === null ? `Lane ${name} is in that state already` : `Lane ${name} is rolled back`,
  });
  return (
    <ChangeHistory
      pages={pages}
      words={LANE_WORDS}
      subject={`lane ${name}`}
      onRestore={
        isManager ? (to) => restore.confirm({ params: { path }, body: { to } }) : undefined
      }
    />
  );
}
