import { useState } from "react";
import { useLocation } from "wouter";
import { messageOf, useAction } from "../../api";
import { Button, Dialog, Notice, TextField } from "../../components";
import { lanePath } from "../../shell/url";
import { fieldError, isAboutFields, type LaneSettings, NEW_LANE } from "../Lane/settings";
import { JobTypesField } from "./JobTypesField";
import { LANE_FIELDS, LaneFields } from "./LaneFields";
import styles from "./Lanes.module.css";

const FIELDS = [...LANE_FIELDS, "name", "job_types"];

/** Creates a lane and opens it. */
export function NewLaneDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [name, setName] = useState("");
  const [settings, setSettings] = useState<LaneSettings>(NEW_LANE);
  const [, go] = useLocation();
  const create = useAction("post", "/admin/workers/lanes", {
    showsError: true,
    done: (lane) => `Lane ${lane.name} is created`,
  });
  const close = () => {
    create.reset();
    onClose();
  };
  const send = async () => {
    const answer = await create.run({ body: { name: name.trim(), ...settings } });
    if (!answer) return;
    close();
    go(lanePath(answer.data.name));
  };
  const set = (change: Partial<LaneSettings>) => setSettings({ ...settings, ...change });
  return (
    <Dialog
      title="New lane"
      isOpen={isOpen}
      onClose={close}
      keepsInput
      footer={
        <>
          <Button onPress={close}>Discard</Button>
          <Button
            variant="primary"
            isPending={create.isPending}
            isDisabled={name.trim() === ""}
            onPress={() => void send()}
          >
            Create the lane
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          maxLength={63}
          mono
          hint="Lower-case letters, digits, dots, hyphens and underscores"
          error={fieldError(create.error, "name")}
        />
        <LaneFields settings={settings} onChange={set} error={create.error} />
        <JobTypesField
          jobTypes={settings.job_types}
          onChange={(job_types) => set({ job_types })}
          error={fieldError(create.error, "job_types")}
        />
        {create.error && !isAboutFields(create.error, FIELDS) && (
          <Notice kind="error" title={messageOf(create.error)} live />
        )}
      </div>
    </Dialog>
  );
}
