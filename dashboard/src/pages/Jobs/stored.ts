import { useState } from "react";

/** A value that this browser keeps; a broken one is forgotten. */
export function useStored<T>(key: string, fallback: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      return (JSON.parse(localStorage.getItem(key) ?? "null") as T | null) ?? fallback;
    } catch {
      return fallback;
    }
  });
  const store = (next: T) => {
    setValue(next);
    localStorage.setItem(key, JSON.stringify(next));
  };
  return [value, store];
}
