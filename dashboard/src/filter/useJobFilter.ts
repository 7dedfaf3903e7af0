import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { FILTER_KEYS, type JobFilter } from "./jobFilter";
import { conflictIn, valueProblem } from "./text";

/** The filter in the page's address, what is wrong with it, and how to change it. */
export function useJobFilter(): {
  filter: JobFilter;
  problem: string | null;
  setFilter: (filter: JobFilter) => void;
} {
  const [params, setParams] = useSearchParams();
  const text = params.toString();
  const { filter, problem } = useMemo(() => read(new URLSearchParams(text)), [text]);
  const setFilter = (next: JobFilter) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      for (const key of FILTER_KEYS) {
        const value = next[key];
        if (value) after.set(key, value);
        else after.delete(key);
      }
      return after;
    });
  return { filter, problem, setFilter };
}

function read(params: URLSearchParams): { filter: JobFilter; problem: string | null } {
  const filter: JobFilter = {};
  let problem: string | null = null;
  for (const key of FILTER_KEYS) {
    const value = params.get(key);
    if (!value) continue;
    filter[key] = value;
    problem ??= valueProblem(key, value);
  }
  return { filter, problem: problem ?? conflictIn(filter) };
}
