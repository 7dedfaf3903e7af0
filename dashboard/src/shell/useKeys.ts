import { useEffect, useRef } from "react";
import { type KeyHandlers, listenToKeys } from "./keys";

/** Listen to keys while the component is shown. */
export function useKeys(handlers: KeyHandlers): void {
  const latest = useRef(handlers);
  latest.current = handlers;
  const names = Object.keys(handlers).join("\n");
  useEffect(() => {
    const all = names.split("\n").map((name) => [name, () => latest.current[name]?.()] as const);
    return listenToKeys(Object.fromEntries(all));
  }, [names]);
}
