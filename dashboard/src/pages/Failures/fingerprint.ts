// A longer text is cut: what differs between failures stands at its start.
const READ = 400;
const SHOWN = 200;

// One pass: the first alternative that matches at a place wins. No alternative repeats another repetition.
const VARIABLE = new RegExp(
  [
    /(?<quoted>(?<!\w)"[^"]*"|(?<!\w)'[^']*'(?!\w)|`[^`]*`|“[^”]*”)/,
    /(?<url>\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s<>)\]]+)/,
    /(?<time>(?<!\d)\d{4}-\d\d-\d\d(?!\d)(?:(?:T\d\d| \d\d(?=:))(?::\d\d){0,2}(?:[.,]\d+)?(?:Z\b|[+-]\d\d(?::?\d\d)?)?)?|(?<!\d)\d{8}T\d{6}Z?\b)/,
    /(?<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b)/,
    /(?<path>(?<![\w.])(?:[a-z]:\\|~?\/)[^\s:'")\]]+)/,
    /(?<n>(?<![a-z_\d])\d+(?:[.,:]\d+){0,8})/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gi",
);

/** A message without what differs between two failures of one cause: numbers, ids, times, quoted text, paths. */
export function fingerprint(message: string): string {
  const text = message.replace(/\s+/g, " ").trim().slice(0, READ);
  const plain = text.replace(VARIABLE, (found: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Record<string, string | undefined>;
    if (groups.quoted !== undefined) return `${found[0]}…${found.at(-1)}`;
    return `<${Object.keys(groups).find((name) => groups[name] !== undefined)}>`;
  });
  return plain.length > SHOWN ? `${plain.slice(0, SHOWN)}…` : plain;
}

export type MessageGroup<T> = { fingerprint: string; newest: T; jobs: T[] };

/** Jobs by the fingerprint of their message, the largest group first; jobs come newest first. */
export function byMessage<T extends { error?: { message?: string | null } | null }>(
  jobs: readonly T[],
): MessageGroup<T>[] {
  const groups = new Map<string, MessageGroup<T>>();
  for (const job of jobs) {
    const name = fingerprint(job.error?.message ?? "");
    const group = groups.get(name);
    if (group) group.jobs.push(job);
    else groups.set(name, { fingerprint: name, newest: job, jobs: [job] });
  }
  return [...groups.values()].sort((one, other) => other.jobs.length - one.jobs.length);
}
