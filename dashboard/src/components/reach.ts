import { createContext, useContext } from "react";

/** Whether this person may see the page of a path. */
export const ReachContext = createContext<(path: string) => boolean>(() => true);

/** Whether an address leads to a page that this person may see. A link to any other is plain text. */
export function useReach(href: string): boolean {
  const isReachable = useContext(ReachContext);
  return isReachable(href.replace(/[?#].*/, ""));
}
