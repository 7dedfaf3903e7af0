import { useRef } from "react";
import { useLive } from "../api";
import { IconButton } from "../components";
import { duration } from "../format";
import { useNow } from "../time";
import styles from "./Shell.module.css";

/** Says whether the page is live, and how old its data is if not. */
export function LiveIndicator() {
  const { status, heardAt, isPaused, setPaused } = useLive();
  const wasLost = useRef(false);
  if (status === "reconnecting") wasLost.current = true;
  const now = useNow();
  const heard = heardAt();
  const age = heard === null ? null : duration(Math.max(0, Math.round((now - heard) / 1000)));
  const old = age === null ? "" : `, data ${age} old`;
  const words = {
    off: "",
    // As short as "live": every page connects again, and the header must not move.
    connecting: "…",
    live: "live",
    reconnecting: `reconnecting${old}`,
    paused: `paused${old}`,
  }[status];
  if (status === "off") return null;
  return (
    <span className={styles.live} data-status={status}>
      {/* Announced when it is lost and found, not with every page or second of its age. */}
      <span className="visually-hidden" role="status">
        {status === "reconnecting" && "Connection lost, reconnecting"}
        {status === "live" && wasLost.current && "Live again"}
      </span>
      <span className={styles.dot} aria-hidden="true" />
      <span className={styles.liveWords} {...(status === "connecting" && { title: "connecting" })}>
        {words}
      </span>
      <IconButton
        icon={isPaused ? "play" : "pause"}
        label={isPaused ? "Resume live updates" : "Pause live updates"}
        onPress={() => setPaused(!isPaused)}
      />
    </span>
  );
}
