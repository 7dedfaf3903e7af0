import { useSyncExternalStore } from "react";
import { allows } from "./access";
import { type Me, type SessionState, session } from "./session";

export function useSession(): SessionState {
  return useSyncExternalStore(session.subscribe, () => session.state);
}

/** The signed-in principal; only below the shell, which shows nothing without one. */
export function useMe(): Me {
  const state = useSession();
  if (!("me" in state)) throw new Error("nobody is signed in");
  return state.me;
}

/** Whether to show the controls of a permission. The server decides again at every request. */
export function useCan(permission: string): boolean {
  return allows(useMe(), permission);
}
