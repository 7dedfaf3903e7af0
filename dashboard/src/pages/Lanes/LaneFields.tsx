import { NumberStepper, Switch } from "../../components";
import { fieldError, type LaneSettings } from "../Lane/settings";
import styles from "./Lanes.module.css";

type Props = {
  settings: LaneSettings;
  onChange: (change: Partial<LaneSettings>) => void;
  error: Error | null;
};

/** The fields that this form shows, by their names in the API. */
export const LANE_FIELDS = [
  "max_slots",
  "poll_interval_ms",
  "stale_timeout_minutes",
  "lease_seconds",
  "enabled",
];

/** The settings of a lane that are numbers. */
export function LaneFields({ settings, onChange, error }: Props) {
  const isBounded = settings.max_slots !== null;
  return (
    <div className={styles.pair}>
      <div className={styles.slots}>
        <NumberStepper
          label="Slots"
          value={settings.max_slots ?? Number.NaN}
          onChange={(max_slots) => onChange({ max_slots })}
          minValue={0}
          maxValue={10_000}
          isDisabled={!isBounded}
          hint={isBounded ? "Most jobs at once, in the whole cluster" : "As many as workers take"}
          error={fieldError(error, "max_slots")}
        />
        <Switch
          isSelected={!isBounded}
          onChange={(isUnbounded) => onChange({ max_slots: isUnbounded ? null : 1 })}
        >
          Unbounded
        </Switch>
      </div>
      <NumberStepper
        label="Poll interval"
        unit="ms"
        value={settings.poll_interval_ms}
        onChange={(poll_interval_ms) => onChange({ poll_interval_ms })}
        minValue={100}
        maxValue={120_000}
        step={100}
        hint="Time between two polls of an idle worker"
        error={fieldError(error, "poll_interval_ms")}
      />
      <NumberStepper
        label="Lease"
        unit="s"
        value={settings.lease_seconds}
        onChange={(lease_seconds) => onChange({ lease_seconds })}
        minValue={2}
        maxValue={3600}
        hint="Without a heartbeat, a job returns after this time"
        error={fieldError(error, "lease_seconds")}
      />
      <NumberStepper
        label="Stale timeout"
        unit="min"
        value={settings.stale_timeout_minutes}
        onChange={(stale_timeout_minutes) => onChange({ stale_timeout_minutes })}
        minValue={1}
        maxValue={1440}
        hint="Longest time without progress, for handlers that report it"
        error={fieldError(error, "stale_timeout_minutes")}
      />
    </div>
  );
}
