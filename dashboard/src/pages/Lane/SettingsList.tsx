import type { components } from "../../api";
import { KeyValue } from "../../components";
import { LaneTypes } from "../Lanes/LaneTypes";
import { LANE_WORDS } from "./settings";

const SHOWN = [
  "max_slots",
  "poll_interval_ms",
  "lease_seconds",
  "stale_timeout_minutes",
  "enabled",
] as const;

/** The settings of a lane, for people who may not change them. */
export function SettingsList({ lane }: { lane: components["schemas"]["LaneDetailOut"] }) {
  return (
    <KeyValue
      items={[
        ...SHOWN.map((field) => ({
          name: LANE_WORDS.name(field),
          value: LANE_WORDS.value(field, lane[field]),
        })),
        { name: "Job types", value: <LaneTypes lane={lane} most={Number.POSITIVE_INFINITY} /> },
      ]}
    />
  );
}
