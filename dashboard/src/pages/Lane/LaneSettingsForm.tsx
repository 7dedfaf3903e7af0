import { useState } from "react";
import { type components, messageOf, useAction, useApi } from "../../api";
import { Button, Notice, Switch } from "../../components";
import { JobTypesField } from "../Lanes/JobTypesField";
import { LANE_FIELDS, LaneFields } from "../Lanes/LaneFields";
import lanes from "../Lanes/Lanes.module.css";
import { LaneTypes } from "../Lanes/LaneTypes";
import { useManagesEverything } from "../Lanes/useAccess";
import styles from "./Lane.module.css";
import { MoveType } from "./MoveType";
import {
  appliesWithin,
  changeWords,
  fieldError,
  isAboutFields,
  type LaneSettings,
  laneChange,
  settingsOf,
} from "./settings";

type Lane = components["schemas"]["LaneDetailOut"];

const FIELDS = [...LANE_FIELDS, "job_types"];

/** Edits the settings of a lane, and shows the difference before it is saved. */
export function LaneSettingsForm({ lane }: { lane: Lane }) {
  // Only what was edited: other fields follow the changes of other people.
  const [edits, setEdits] = useState<Partial<LaneSettings>>({});
  const [moving, setMoving] = useState<string | null>(null);
  const ownerOf = useOwners(lane.name);
  const isManagerOfAll = useManagesEverything();
  const save = useAction("patch", "/admin/workers/lanes/{name}", {
    showsError: true,
    done: ({ change }) => (change === null ? "Nothing changed" : `Lane ${lane.name} is changed`),
  });
  const before = settingsOf(lane);
  const after = { ...before, ...edits };
  const change = laneChange(before, after);
  const isChanged = Object.keys(change).length > 0;
  const set = (edit: Partial<LaneSettings>) => {
    save.reset();
    setEdits({ ...edits, ...edit });
  };
  const setTypes = (job_types: string[]) => {
    const taken = job_types.find((name) => !after.job_types.includes(name) && ownerOf(name));
    if (taken === undefined) set({ job_types });
    else setMoving(taken);
  };
  const send = async () => {
    const answer = await save.run({ params: { path: { name: lane.name } }, body: change });
    if (answer) setEdits({});
  };
  const reset = () => {
    setEdits({});
    save.reset();
  };
  return (
    <div className={lanes.form}>
      <LaneFields settings={after} onChange={set} error={save.error} />
      {isManagerOfAll ? (
        <JobTypesField
          jobTypes={after.job_types}
          onChange={setTypes}
          error={fieldError(save.error, "job_types")}
          {...(lane.name === "default" && { hint: "It also takes every type of no other lane." })}
        />
      ) : (
        <div className={lanes.typeField}>
          <span className={lanes.label}>Job types</span>
          <LaneTypes lane={lane} most={Number.POSITIVE_INFINITY} />
        </div>
      )}
      <Switch
        isSelected={after.enabled}
        onChange={(enabled) => set({ enabled })}
        isDisabled={lane.frozen}
        hint={
          lane.frozen ? "Frozen: thaw the lane first" : "Off: running jobs finish, no other starts"
        }
      >
        Takes jobs
      </Switch>
      {save.error && !isAboutFields(save.error, FIELDS) && (
        <Notice kind="error" title={messageOf(save.error)} live />
      )}
      {isChanged && (
        <section className={styles.difference} aria-label="Changes to save">
          <p role="status">
            <strong>{changeWords(before, after)}</strong>, {appliesWithin(lane)}
          </p>
          <div className={styles.buttons}>
            <Button onPress={reset}>Discard</Button>
            <Button variant="primary" isPending={save.isPending} onPress={() => void send()}>
              Save
            </Button>
          </div>
        </section>
      )}
      <MoveType
        jobType={moving}
        from={moving === null ? null : ownerOf(moving)}
        to={lane.name}
        onClose={() => setMoving(null)}
      />
    </div>
  );
}

/** The other lane that names a job type, or null. */
function useOwners(lane: string): (jobType: string) => string | null {
  const status = useApi("/admin/workers/status");
  const others = status.data?.lanes.filter(({ name }) => name !== lane) ?? [];
  return (jobType) => others.find(({ job_types }) => job_types.includes(jobType))?.name ?? null;
}
