import { useSearchParams } from "wouter";
import type { operations } from "../../api";
import { isMoment, parseAge } from "../../filter";

type Query = NonNullable<operations["list_audit_entries"]["parameters"]["query"]>;

export const AUDIT_KEYS = [
  "actor",
  "action",
  "kind",
  "name",
  "outcome",
  "door",
  "workspace",
  "since",
] as const;

/** A filter of the audit as it stands in the page's address. */
export type AuditFilterValues = Partial<Record<(typeof AUDIT_KEYS)[number], string>>;

export function useAuditFilter() {
  const [params, setParams] = useSearchParams();
  const filter: AuditFilterValues = {};
  for (const key of AUDIT_KEYS) {
    const value = params.get(key);
    if (value) filter[key] = value;
  }
  const setFilter = (next: AuditFilterValues) =>
    setParams(() =>
      Object.fromEntries(
        AUDIT_KEYS.flatMap((key) => (next[key] ? [[key, next[key] as string]] : [])),
      ),
    );
  return { filter, query: toQuery(filter), isEmpty: Object.keys(filter).length === 0, setFilter };
}

function toQuery({ since, ...same }: AuditFilterValues): Query {
  const newerThan = since ? parseAge(since) : null;
  return {
    ...same,
    limit: 50,
    ...(newerThan !== null && { newer_than: newerThan }),
    ...(since && isMoment(since) && { since: new Date(since).toISOString() }),
  } as Query;
}
