import type { components } from "../../api";
import { Chip, LinkText } from "../../components";
import { lanePath } from "../../shell/url";
import styles from "./Lanes.module.css";

type Props = {
  lane: Pick<components["schemas"]["LaneStatusOut"], "name" | "job_types">;
  most?: number;
};

const UNNAMED: Record<string, string> = {
  default: "every other type",
  analysis: "analyses of all types",
};

/** The job types of a lane; the default lane takes what no other lane names. */
export function LaneTypes({ lane, most = 4 }: Props) {
  if (lane.job_types.length === 0) {
    return <span className="muted">{UNNAMED[lane.name] ?? "named by handlers"}</span>;
  }
  const more = lane.job_types.length - most;
  return (
    <span className={styles.types}>
      {lane.job_types.slice(0, most).map((name) => (
        <Chip key={name}>{name}</Chip>
      ))}
      {more > 0 && <LinkText href={lanePath(lane.name)}>{`+${more}`}</LinkText>}
    </span>
  );
}
