import { useQueryClient } from "@tanstack/react-query";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useState,
  useSyncExternalStore,
} from "react";
import { LiveUpdates } from "./live_updates";
import { fetchAsCaller } from "./request";
import { ROOT } from "./root";
import { LiveStream, type StreamStatus } from "./stream";
import { useCan } from "./use_session";

type Live = {
  status: StreamStatus;
  /** When the server was last heard of, in milliseconds since 1970. */
  heardAt: () => number | null;
  isPaused: boolean;
  setPaused: (isPaused: boolean) => void;
  /** Follow topics until the returned function is called. */
  follow: (topics: string[]) => () => void;
};

const LiveContext = createContext<Live | null>(null);
// A tab that is left for a moment keeps its stream.
const HIDDEN_MS = 5000;

/** Holds the one stream of this tab; pages name their topics with `useTopics`. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const cache = useQueryClient();
  const [isPaused, setPaused] = useState(false);
  const connection = useMemo(() => makeConnection(new LiveUpdates(cache)), [cache]);
  const status = useSyncExternalStore(connection.subscribe, () => connection.stream.status);
  const stream = connection.stream;

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => stream.pause("hidden", true), HIDDEN_MS);
      else stream.pause("hidden", false);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      stream.close();
    };
  }, [stream]);
  useEffect(() => stream.pause("person", isPaused), [stream, isPaused]);

  const { follow } = connection;
  const live = useMemo(
    () => ({ status, heardAt: () => stream.heardAt, isPaused, setPaused, follow }),
    [status, stream, isPaused, follow],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

export function useLive(): Live {
  const live = useContext(LiveContext);
  if (live === null) throw new Error("useLive needs a LiveProvider");
  return live;
}

/** Follow topics (`jobs`, `job:<id>`, `lane:<name>`, `approvals`, `lanes`) while the page is open. */
export function useTopics(topics: string[]): void {
  const { follow } = useLive();
  const seesLanes = useCan("workers:view");
  const seesJobs = useCan("jobs:read");
  const allowed = topics.filter((each) => (each === "lanes" ? seesLanes : seesJobs));
  const key = allowed.join("\n");
  useEffect(() => follow(key === "" ? [] : key.split("\n")), [follow, key]);
}

function makeConnection(updates: LiveUpdates) {
  const listeners = new Set<() => void>();
  const wanted = new Set<string[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stream = new LiveStream({
    open: (topics, lastId, signal) => {
      const query = new URLSearchParams(topics.map((topic) => ["topic", topic]));
      const headers = new Headers({ Accept: "text/event-stream" });
      if (lastId !== null) headers.set("Last-Event-ID", lastId);
      return fetchAsCaller(new Request(`${ROOT}events?${query}`, { headers, signal }));
    },
    onEvent: (event) => updates.apply(event),
    onMissing: () => updates.readJobs(),
    onChange: () => {
      for (const listener of listeners) listener();
    },
  });
  // A change of pages ends one set of topics and begins the next: reconnect once.
  const followSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stream.follow([...wanted].flat()), 30);
  };
  return {
    stream,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    follow: (topics: string[]) => {
      wanted.add(topics);
      followSoon();
      return () => {
        wanted.delete(topics);
        followSoon();
      };
    },
  };
}
