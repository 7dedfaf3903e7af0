import { useSyncExternalStore } from "react";
import type { Zone } from "../format";

export type Preferences = {
  theme: "system" | "light" | "dark";
  zone: Zone;
  density: "comfortable" | "dense";
};

const KEY = "laneway.preferences";
const DEFAULTS: Preferences = { theme: "system", zone: "local", density: "comfortable" };
const listeners = new Set<() => void>();
let current = load();

function load(): Preferences {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return DEFAULTS;
  }
}

/** Apply the theme and density to the document. */
export function applyPreferences(): void {
  const root = document.documentElement;
  if (current.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = current.theme;
  root.dataset.density = current.density;
}

export function setPreferences(change: Partial<Preferences>): void {
  current = { ...current, ...change };
  localStorage.setItem(KEY, JSON.stringify(current));
  applyPreferences();
  for (const listener of listeners) listener();
}

/** What this person prefers in this browser. */
export function usePreferences(): Preferences {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
