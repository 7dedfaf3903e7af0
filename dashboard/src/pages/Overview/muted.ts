import { StoredValue, useStored } from "../../storage";

const DAY_MS = 86_400_000;

/** When each muted problem speaks again, in milliseconds since 1970. */
type Muted = Readonly<Record<string, number>>;

const stored = new StoredValue<Muted>("laneway.muted", {});

function keep(muted: Muted): void {
  const now = Date.now();
  stored.set(Object.fromEntries(Object.entries(muted).filter(([, until]) => until > now)));
}

/** Hide problems in this browser for a day. */
export function mute(ids: string[]): void {
  keep({ ...stored.value, ...Object.fromEntries(ids.map((id) => [id, Date.now() + DAY_MS])) });
}

export function unmute(ids: string[]): void {
  keep(Object.fromEntries(Object.entries(stored.value).filter(([id]) => !ids.includes(id))));
}

export const useMuted = (): Muted => useStored(stored);
