import { useState } from "react";
import { type components, messageOf, useAction } from "../../api";
import { Button, Dialog, Notice, NumberStepper, Select, Switch, TextField } from "../../components";
import { FieldChanges } from "../../history";
import { fieldError, isAboutFields } from "../Lane/settings";
import lanes from "../Lanes/Lanes.module.css";
import { LIMIT_WORDS, type LimitSettings, limitSettings, NEW_LIMIT } from "./limits";

type Limit = components["schemas"]["LimitStatusOut"];

const FIELDS = ["name", "max_concurrent", "rate_count", "rate_period_s", "scope"];
const SCOPES = [
  { id: "cluster", label: "Cluster", detail: "exact, over all machines" },
  { id: "host", label: "Host", detail: "for each machine" },
  { id: "process", label: "Process", detail: "for each worker process" },
] as const;

/** Creates or changes a limit. */
export function LimitDialog({ limit, onClose }: { limit: Limit | null; onClose: () => void }) {
  const [name, setName] = useState(limit?.name ?? "");
  const before = limit === null ? NEW_LIMIT : limitSettings(limit);
  const [settings, setSettings] = useState<LimitSettings>(before);
  const save = useAction("put", "/admin/limits/{name}", {
    showsError: true,
    done: (saved) => `Limit ${saved.name} is ${limit === null ? "created" : "changed"}`,
  });
  const set = (change: Partial<LimitSettings>) => {
    save.reset();
    setSettings({ ...settings, ...change });
  };
  const send = async () => {
    const answer = await save.run({ params: { path: { name: name.trim() } }, body: settings });
    if (answer) onClose();
  };
  const isBounded = settings.max_concurrent !== null;
  const hasRate = settings.rate_count !== null;
  const isChanged = JSON.stringify(before) !== JSON.stringify(settings);
  return (
    <Dialog
      title={limit === null ? "New limit" : `Limit ${limit.name}`}
      isOpen
      keepsInput
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Discard</Button>
          <Button
            variant="primary"
            isPending={save.isPending}
            isDisabled={name.trim() === "" || (limit !== null && !isChanged)}
            onPress={() => void send()}
          >
            {limit === null ? "Create the limit" : "Save"}
          </Button>
        </>
      }
    >
      <div className={lanes.form}>
        {limit === null && (
          <TextField
            label="Name"
            value={name}
            onChange={setName}
            mono
            hint="What handlers ask for: limits=[…] or ctx.limit(…)"
            error={fieldError(save.error, "name")}
          />
        )}
        <div className={lanes.pair}>
          <div className={lanes.slots}>
            <NumberStepper
              label="Holders at once"
              value={settings.max_concurrent ?? Number.NaN}
              onChange={(max_concurrent) => set({ max_concurrent })}
              minValue={0}
              maxValue={10_000}
              isDisabled={!isBounded}
              error={fieldError(save.error, "max_concurrent")}
            />
            <Switch
              isSelected={!isBounded}
              onChange={(isUnbounded) => set({ max_concurrent: isUnbounded ? null : 1 })}
            >
              Unbounded
            </Switch>
          </div>
          <Select
            label="Scope"
            options={SCOPES}
            value={settings.scope}
            onChange={(scope) => set({ scope })}
            hint="Where holders are counted together"
            error={fieldError(save.error, "scope")}
          />
        </div>
        <Switch
          isSelected={hasRate}
          onChange={(isOn) =>
            set(
              isOn
                ? { rate_count: 60, rate_period_s: 60 }
                : { rate_count: null, rate_period_s: null },
            )
          }
          hint="Bound how many start in a period of time"
        >
          Rate
        </Switch>
        {hasRate && (
          <div className={lanes.pair}>
            <NumberStepper
              label="Starts"
              value={settings.rate_count ?? 1}
              onChange={(rate_count) => set({ rate_count })}
              minValue={1}
              maxValue={1_000_000}
              error={fieldError(save.error, "rate_count")}
            />
            <NumberStepper
              label="Period"
              unit="s"
              value={settings.rate_period_s ?? 60}
              onChange={(rate_period_s) => set({ rate_period_s })}
              minValue={0.1}
              maxValue={86_400}
              error={fieldError(save.error, "rate_period_s")}
            />
          </div>
        )}
        {limit !== null && isChanged && (
          <FieldChanges before={before} after={settings} words={LIMIT_WORDS} />
        )}
        {save.error && !isAboutFields(save.error, FIELDS) && (
          <Notice kind="error" title={messageOf(save.error)} live />
        )}
      </div>
    </Dialog>
  );
}
