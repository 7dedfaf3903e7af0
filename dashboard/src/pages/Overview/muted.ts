import { useSyncExternalStore } from "react";

const KEY = "laneway.muted";
const DAY_MS = 86_400_000;
const listeners = new Set<() => void>();

/** When each muted problem speaks again, in milliseconds since 1970. */
type Muted = Readonly<Record<string, number>>;

let current = load();

function load(): Muted {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
}

function keep(muted: Muted): void {
  const now = Date.now();
  current = Object.fromEntries(Object.entries(muted).filter(([, until]) => until > now));
  localStorage.setItem(KEY, JSON.stringify(current));
  for (const listener of listeners) listener();
}

/** Hide problems in this browser for a day. */
export function mute(ids: string[]): void {
  keep({ ...current, ...Object.fromEntries(ids.map((id) => [id, Date.now() + DAY_MS])) });
}

export function unmute(ids: string[]): void {
  keep(Object.fromEntries(Object.entries(current).filter(([id]) => !ids.includes(id))));
}

export function useMuted(): Muted {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
