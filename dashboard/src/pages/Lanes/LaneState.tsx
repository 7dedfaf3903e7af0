import type { components } from "../../api";
import { Badge } from "../../components";

type Lane = components["schemas"]["LaneStatusOut"];

/** Whether the lane starts jobs, in one word. */
export function LaneState({ lane, isPaused = false }: { lane: Lane; isPaused?: boolean }) {
  if (lane.frozen) {
    return (
      <Badge tone="info" icon="lock">
        Frozen
      </Badge>
    );
  }
  if (!lane.enabled) {
    return (
      <Badge tone="warning" icon="stop">
        Drained
      </Badge>
    );
  }
  if (isPaused) {
    return (
      <Badge tone="warning" icon="pause">
        Paused
      </Badge>
    );
  }
  return (
    <Badge tone="completed" icon="check">
      Open
    </Badge>
  );
}
