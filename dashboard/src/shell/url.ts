import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** One value of the page's address; null removes it. All view state lives there. */
export function useUrlValue(name: string): [string | null, (value: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string | null) =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (value === null || value === "") next.delete(name);
          else next.set(name, value);
          return next;
        },
        { replace: true },
      ),
    [setParams, name],
  );
  return [params.get(name), set];
}

/** The address of a page with parameters; empty ones are left out. */
export function href(path: string, query: Record<string, string | number | null | undefined> = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** Addresses of pages with a name in them. */
export const lanePath = (name: string) => `/lanes/${encodeURIComponent(name)}`;
export const flowPath = (id: string) => `/flows/${encodeURIComponent(id)}`;
export const jobPath = (id: string) => `/jobs/${encodeURIComponent(id)}`;
