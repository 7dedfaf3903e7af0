import {
  keepPreviousData,
  type UseInfiniteQueryResult,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useToast } from "../components";
import { writeJson } from "./json";
import { messageOf, Unreachable } from "./problem";
import {
  type Data,
  type Init,
  KEY_HEADER,
  type Method,
  type Operation,
  type Path,
  randomKey,
  request,
} from "./request";

type Parameters<P extends Path<"get">> =
  Operation<"get", P> extends { parameters: infer All } ? Omit<All, "header" | "cookie"> : never;

type ReadOptions = {
  enabled?: boolean;
  /** Seconds between two reads, for what sends no event; never for lists. */
  everyS?: number;
  /** Leave large values out of the response. */
  small?: boolean;
  /** Only for pages: events patch the items that are shown, but never add items or move them. */
  isSteady?: boolean;
  /** Only for pages: read one after the other, for names that are looked up in the whole list. */
  isWhole?: boolean;
};

/** The key under which the response of a route is cached. */
export function keyOf<P extends Path<"get">>(path: P, params?: Parameters<P>): readonly unknown[] {
  return params === undefined ? [path] : [path, params];
}

/** Read a route and keep it current: the one way to fetch. */
export function useApi<P extends Path<"get">>(
  path: P,
  params?: Parameters<P>,
  options: ReadOptions = {},
): UseQueryResult<Data<"get", P>, Error> {
  return useQuery({
    queryKey: keyOf(path, params),
    queryFn: ({ signal }) => read(path, params, signal, options),
    enabled: options.enabled ?? true,
    refetchInterval: options.everyS ? options.everyS * 1000 : false,
    placeholderData: keepPreviousData,
  }) as UseQueryResult<Data<"get", P>, Error>;
}

/** A page of a list, or of the jobs of a flow. */
type PageOf<T> = { next_cursor: string | null } & ({ items: T[] } | { jobs: T[] });
type ItemOf<P extends Path<"get">> =
  Data<"get", P> extends { items: (infer T)[] }
    ? T
    : Data<"get", P> extends { jobs: (infer T)[] }
      ? T
      : never;

export type Pages<T, Page = PageOf<T>> = UseInfiniteQueryResult<{ pages: Page[] }, Error> & {
  items: T[];
};

const MOST_PAGES = 25;

/** Read a list page by page. */
export function useApiPages<P extends Path<"get">>(
  path: P,
  params?: Parameters<P>,
  options: ReadOptions = {},
): Pages<ItemOf<P>, Data<"get", P>> {
  const found = useInfiniteQuery({
    queryKey: [options.isSteady ? "steady" : "pages", ...keyOf(path, params)],
    queryFn: ({ signal, pageParam }) =>
      read(path, withCursor(params, pageParam), signal, options) as Promise<PageOf<ItemOf<P>>>,
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    enabled: options.enabled ?? true,
    placeholderData: keepPreviousData,
  });
  const { hasNextPage, isFetching, isError, fetchNextPage } = found;
  const isShort = (found.data?.pages.length ?? 0) < MOST_PAGES;
  const readsOn = (options.isWhole ?? false) && isShort && hasNextPage && !isFetching && !isError;
  useEffect(() => {
    if (readsOn) void fetchNextPage();
  }, [readsOn, fetchNextPage]);
  const items = found.data?.pages.flatMap(itemsOf) ?? [];
  return { ...found, items } as unknown as Pages<ItemOf<P>, Data<"get", P>>;
}

const itemsOf = <T>(page: PageOf<T>): T[] => ("items" in page ? page.items : page.jobs);

function withCursor<T>(params: T, cursor: string | null): T {
  if (cursor === null) return params;
  const given = params as { query?: object } | undefined;
  return { ...given, query: { ...given?.query, cursor } } as T;
}

function read<P extends Path<"get">>(
  path: P,
  params: Parameters<P> | undefined,
  signal: AbortSignal,
  options: ReadOptions,
): Promise<Data<"get", P>> {
  const headers = options.small ? { "Laneway-Large-Values": "omit" } : {};
  return request("get", path, { params, signal, headers } as unknown as Init<"get", P>);
}

type ActionOptions<T> = {
  /** The sentence to show when the server has confirmed. */
  done?: string | ((data: T) => string);
  /** Let the caller show the error, for forms. */
  showsError?: boolean;
};

export type Action<M extends Method, P extends Path<M>> = {
  /** Send it; undefined if it was refused. */
  run: (init: Init<M, P>) => Promise<{ data: Data<M, P> } | undefined>;
  /** Send it; rejects if it was refused, so that a dialog stays open. */
  confirm: (init: Init<M, P>) => Promise<Data<M, P>>;
  isPending: boolean;
  error: Error | null;
  reset: () => void;
};

/** Change something: the one way to act. Nothing is shown as done before the server confirms. */
export function useAction<M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  options: ActionOptions<Data<M, P>> = {},
): Action<M, P> {
  const cache = useQueryClient();
  const toast = useToast();
  // A request without an answer may have been done: the same one again has the same key.
  const unanswered = useRef<{ sent: string; key: string } | null>(null);
  const mutation = useMutation<Data<M, P>, Error, Init<M, P>>({
    mutationFn: async (init) => {
      const sent = writeJson(init);
      const key = unanswered.current?.sent === sent ? unanswered.current.key : randomKey();
      unanswered.current = { sent, key };
      const headers = { ...(init as { headers?: object }).headers, [KEY_HEADER]: key };
      try {
        const keyed = { ...(init as object), headers } as unknown as Init<M, P>;
        const data = await request(method, path, keyed);
        unanswered.current = null;
        return data;
      } catch (error) {
        if (!(error instanceof Unreachable)) unanswered.current = null;
        throw error;
      }
    },
    onSuccess: async (data) => {
      const said = typeof options.done === "function" ? options.done(data) : options.done;
      if (said) toast.success(said);
      await cache.invalidateQueries({ refetchType: "active" });
    },
    onError: (error) => {
      if (!options.showsError) toast.error(messageOf(error));
    },
  });
  return {
    run: async (init) => {
      try {
        return { data: await mutation.mutateAsync(init) };
      } catch {
        return undefined; // shown by onError, or by the caller
      }
    },
    confirm: mutation.mutateAsync,
    isPending: mutation.isPending,
    error: mutation.error,
    reset: mutation.reset,
  };
}
