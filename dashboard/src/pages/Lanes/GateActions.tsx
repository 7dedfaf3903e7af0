import { useState } from "react";
import { type components, useAction } from "../../api";
import { Button, ConfirmDialog, Menu } from "../../components";
import { plural } from "../../format";

type Status = components["schemas"]["StatusOut"];
type Question = "pause" | "freeze";

/** Pause, resume, freeze and thaw all lanes. Only for people who manage all of them. */
export function GateActions({ status }: { status: Status }) {
  const [question, setQuestion] = useState<Question | null>(null);
  const pause = useAction("post", "/admin/workers/pause", { done: "All lanes are paused" });
  const resume = useAction("post", "/admin/workers/resume", { done: "Claiming resumes" });
  const freeze = useAction("post", "/admin/workers/freeze", {
    done: ({ running }) =>
      running === 0
        ? "All lanes are frozen and quiet"
        : `All lanes are frozen; ${plural(running, "job")} still running`,
  });
  const thaw = useAction("post", "/admin/workers/thaw", {
    done: ({ lanes }) => `${plural(lanes.length, "lane")} thawed`,
  });
  const frozen = status.lanes.filter((lane) => lane.frozen).length;
  const running = plural(status.active.length, "running job");
  const ask = (): Promise<unknown> =>
    question === "pause"
      ? pause.confirm({})
      : freeze.confirm({ body: { lanes: null, deadline: 0, or_thaw: false } });
  return (
    <>
      {status.paused ? (
        <Button icon="play" isPending={resume.isPending} onPress={() => void resume.run({})}>
          Resume all
        </Button>
      ) : (
        <Button icon="pause" onPress={() => setQuestion("pause")}>
          Pause all
        </Button>
      )}
      {frozen > 0 && (
        <Button
          icon="play"
          isPending={thaw.isPending}
          onPress={() => void thaw.run({ body: { lanes: null } })}
        >
          {`Thaw ${plural(frozen, "lane")}`}
        </Button>
      )}
      <Menu
        label="More for all lanes"
        size="md"
        items={[
          {
            id: "freeze",
            label: "Freeze all lanes",
            detail: "Drain every open lane, and restore it by one thaw",
            icon: "lock",
            onAction: () => setQuestion("freeze"),
          },
        ]}
      />
      <ConfirmDialog
        isOpen={question !== null}
        title={question === "freeze" ? "Freeze all lanes?" : "Pause all lanes?"}
        confirmLabel={question === "freeze" ? "Freeze" : "Pause"}
        onClose={() => setQuestion(null)}
        onConfirm={ask}
      >
        <p>
          {question === "freeze"
            ? `No lane starts jobs until it is thawed. ${running} will finish. Lanes that are drained now stay drained after the thaw.`
            : `No worker claims a job until you resume. ${running} will finish.`}
        </p>
      </ConfirmDialog>
    </>
  );
}
