import { type ComponentType, lazy } from "react";

type Loaded = { default: ComponentType };

/** A screen: its route, its name in the navigation and the permissions of which it needs one. */
export type Screen = {
  route: string;
  name: string;
  /** The second key after `g`. */
  key?: string;
  needs: string[];
  isInNavigation: boolean;
  page: ComponentType;
};

const screen = (
  route: string,
  name: string,
  needs: string[],
  load: () => Promise<Loaded>,
  key?: string,
): Screen => ({
  route,
  name,
  needs,
  isInNavigation: !route.includes("/:") || route.endsWith("?"),
  page: lazy(load),
  ...(key && { key }),
});

export const SCREENS: Screen[] = [
  screen("/", "Overview", ["workers:view"], () => import("./Overview"), "o"),
  screen("/lanes", "Lanes", ["workers:view"], () => import("./Lanes"), "l"),
  screen("/lanes/:name", "Lane", ["workers:view"], () => import("./Lane")),
  screen("/jobs", "Jobs", ["jobs:read"], () => import("./Jobs"), "j"),
  screen("/jobs/:id", "Job", ["jobs:read"], () => import("./Job")),
  screen("/flows", "Flows", ["jobs:read"], () => import("./Flows"), "k"),
  screen("/flows/:id", "Flow", ["jobs:read"], () => import("./Flow")),
  screen("/failures", "Failures", ["workers:view"], () => import("./Failures"), "f"),
  screen("/approvals", "Approvals", ["jobs:read"], () => import("./Approvals"), "a"),
  screen("/schedules", "Schedules", ["schedules:view"], () => import("./Schedules"), "s"),
  screen("/workers", "Workers", ["workers:view"], () => import("./Workers"), "w"),
  screen("/limits", "Limits", ["workers:view"], () => import("./Limits"), "i"),
  screen("/audit", "Audit", ["audit:read"], () => import("./Audit"), "u"),
  screen("/settings/:tab?", "Settings", [], () => import("./Settings"), "t"),
];
