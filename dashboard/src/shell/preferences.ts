import type { Zone } from "../format";
import { StoredValue, useStored } from "../storage";

export type Preferences = {
  theme: "system" | "light" | "dark";
  zone: Zone;
  density: "comfortable" | "dense";
};

const DEFAULTS: Preferences = { theme: "system", zone: "local", density: "comfortable" };
const stored = new StoredValue<Partial<Preferences>>("laneway.preferences", {});
let current: Preferences = { ...DEFAULTS, ...stored.value };

stored.subscribe(() => {
  current = { ...DEFAULTS, ...stored.value };
  applyPreferences();
});

/** Apply the theme and density to the document. */
export function applyPreferences(): void {
  const root = document.documentElement;
  if (current.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = current.theme;
  root.dataset.density = current.density;
}

export function setPreferences(change: Partial<Preferences>): void {
  stored.set({ ...current, ...change });
}

/** What this person prefers in this browser. */
export function usePreferences(): Preferences {
  useStored(stored);
  return current;
}
