import { useState } from "react";
import { type components, covers, parseJson, useAction, useMe } from "../../api";
import { Button, ConfirmDialog, TextArea } from "../../components";
import { plural } from "../../format";
import styles from "./Now.module.css";

type Job = components["schemas"]["JobDetailOut"];

// As every interface keeps an event if the sender does not say.
const A_DAY_S = 86_400;

/** Send the event for which a job waits; only for those who may. */
export function SendEvent({ job }: { job: Job }) {
  const [isOpen, setOpen] = useState(false);
  const me = useMe();
  if (job.waits_for?.kind !== "event" || !covers(me, "events:send", job)) return null;
  return (
    <>
      <Button size="sm" icon="bolt" onPress={() => setOpen(true)}>
        Send the event
      </Button>
      {isOpen && <EventDialog job={job} onClose={() => setOpen(false)} />}
    </>
  );
}

function EventDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [text, setText] = useState("{}");
  const send = useAction("post", "/events", {
    done: ({ delivered }) => `The event was sent: ${plural(delivered, "job")} continued`,
  });
  const payload = read(text);
  const { event, key } = job.waits_for ?? {};
  return (
    <ConfirmDialog
      isOpen
      title={`Send ${event}?`}
      confirmLabel="Send"
      isBlocked={payload === undefined}
      onClose={onClose}
      onConfirm={() =>
        send.confirm({
          body: {
            name: event ?? "",
            key: key ?? "",
            payload: payload?.value,
            workspace: job.workspace,
            retention_s: A_DAY_S,
          },
        })
      }
    >
      <div className={styles.body}>
        <p>
          Every job that waits for this event{key ? ` with the key ${key}` : ""} continues. An event
          cannot be taken back.
        </p>
        <TextArea
          label="Payload"
          hint="JSON that the handlers are given"
          mono
          value={text}
          onChange={setText}
          {...(payload === undefined && { error: "This is not JSON." })}
        />
      </div>
    </ConfirmDialog>
  );
}

/** The value of a JSON text; undefined if it is none. */
function read(text: string): { value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}
