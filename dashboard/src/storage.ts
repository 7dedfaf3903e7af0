import { useSyncExternalStore } from "react";

/** A value that this browser keeps, for all its tabs; a broken one is forgotten. */
export class StoredValue<T> {
  #value: T;
  #listeners = new Set<() => void>();

  constructor(
    readonly key: string,
    readonly fallback: T,
  ) {
    this.#value = this.#load();
    // Other tabs write too.
    globalThis.addEventListener?.("storage", (event: StorageEvent) => {
      if (event.key === this.key) this.#become(this.#load());
    });
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    try {
      localStorage.setItem(this.key, JSON.stringify(value));
    } catch {
      // A browser that stores nothing keeps it until the page is closed.
    }
    this.#become(value);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #load(): T {
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(this.key) ?? "null");
      return isLike(stored, this.fallback) ? (stored as T) : this.fallback;
    } catch {
      return this.fallback;
    }
  }

  #become(value: T): void {
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }
}

export function useStored<T>(stored: StoredValue<T>): T {
  return useSyncExternalStore(stored.subscribe, () => stored.value);
}

/** Whether a value is a list or a record like another one. */
function isLike(value: unknown, other: unknown): boolean {
  return (
    value !== null && typeof value === typeof other && Array.isArray(value) === Array.isArray(other)
  );
}
