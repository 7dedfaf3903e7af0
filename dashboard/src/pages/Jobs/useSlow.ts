import { useEffect, useState } from "react";

const SLOW_MS = 5000;

/** Whether something has been going on for long. */
export function useSlow(isGoingOn: boolean): boolean {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    setSlow(false);
    if (!isGoingOn) return;
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, [isGoingOn]);
  return isSlow;
}
