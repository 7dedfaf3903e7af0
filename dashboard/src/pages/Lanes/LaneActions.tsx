import { useLocation } from "wouter";
import { type components, useAction } from "../../api";
import { Button, type ButtonProps, Menu, type MenuEntry, useToast } from "../../components";
import { copyText } from "../../components/clipboard";
import { href, lanePath } from "../../shell/url";
import { asCli, asCurl } from "./commands";
import styles from "./Lanes.module.css";
import { useManagesLane } from "./useAccess";

type Lane = components["schemas"]["LaneStatusOut"];

/** Drain or resume a lane, and everything else one can do with it. */
export function LaneActions({ lane, onLanePage = false }: { lane: Lane; onLanePage?: boolean }) {
  const { name } = lane;
  const isManager = useManagesLane(name);
  const [, go] = useLocation();
  const { show } = useToast();
  const tune = useAction("patch", "/admin/workers/lanes/{name}", {
    done: ({ enabled }) =>
      enabled ? `Lane ${name} is open again` : `Lane ${name} is drained: running jobs finish`,
  });
  const freeze = useAction("post", "/admin/workers/freeze", {
    done: ({ running }) =>
      running === 0 ? `Lane ${name} is frozen and quiet` : `Lane ${name} is frozen; jobs finish`,
  });
  const thaw = useAction("post", "/admin/workers/thaw", { done: `Lane ${name} is thawed` });
  const setEnabled = (enabled: boolean) =>
    void tune.run({ params: { path: { name } }, body: { enabled } });
  const copy = async (text: string) => {
    const copied = await copyText(text);
    show({ kind: copied ? "success" : "error", title: copied ? "Copied" : "Could not copy" });
  };
  const verb = lane.enabled ? "drain" : "resume";
  const items: MenuEntry[] = [
    ...(isManager && !lane.frozen
      ? [
          {
            id: "freeze",
            label: "Freeze",
            detail: "Drain it until somebody thaws it",
            icon: "lock" as const,
            onAction: () =>
              void freeze.run({ body: { lanes: [name], deadline: 0, or_thaw: false } }),
          },
          "line" as const,
        ]
      : []),
    ...(onLanePage
      ? []
      : [
          {
            id: "open",
            label: "Settings and history",
            icon: "settings" as const,
            onAction: () => go(lanePath(name)),
          },
        ]),
    {
      id: "queued",
      label: "Queued jobs",
      icon: "queued",
      onAction: () => go(href("/jobs", { status: "approved", lane: name })),
    },
    {
      id: "failed",
      label: "Failed jobs",
      icon: "failure",
      onAction: () => go(href("/jobs", { status: "failed", lane: name })),
    },
    ...(isManager
      ? [
          "line" as const,
          {
            id: "cli",
            label: `Copy “${verb}” as command`,
            icon: "copy" as const,
            onAction: () => void copy(asCli(`lanes ${verb} ${name}`)),
          },
          {
            id: "curl",
            label: `Copy “${verb}” as curl`,
            icon: "copy" as const,
            onAction: () =>
              void copy(asCurl("PATCH", `admin/workers/lanes/${name}`, { enabled: !lane.enabled })),
          },
        ]
      : []),
  ];
  // In a table, the numbers come first.
  const look: Pick<ButtonProps, "size" | "variant"> & { size: "sm" | "md" } = onLanePage
    ? { size: "md" }
    : { size: "sm", variant: "quiet" };
  return (
    <span className={styles.actions}>
      {isManager && lane.frozen && (
        <Button
          {...look}
          icon="play"
          isPending={thaw.isPending}
          onPress={() => void thaw.run({ body: { lanes: [name] } })}
        >
          Thaw
        </Button>
      )}
      {isManager && !lane.frozen && (
        <Button
          {...look}
          icon={lane.enabled ? "stop" : "play"}
          isPending={tune.isPending}
          onPress={() => setEnabled(!lane.enabled)}
        >
          {lane.enabled ? "Drain" : "Resume"}
        </Button>
      )}
      <Menu label={`Actions of lane ${name}`} items={items} size={look.size} />
    </span>
  );
}
