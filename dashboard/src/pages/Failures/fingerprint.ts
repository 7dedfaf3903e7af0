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
  const plain = oneLine(message).replace(VARIABLE, (found: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Record<string, string | undefined>;
    if (groups.quoted !== undefined) return `${found[0]}…${found.at(-1)}`;
    return `<${Object.keys(groups).find((name) => groups[name] !== undefined)}>`;
  });
  return cut(plain);
}

function oneLine(message: string): string {
  return message.replace(/\s+/g, " ").trim().slice(0, READ);
}

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

export type MessageGroup<T> = {
  fingerprint: string;
  /** The message, if all jobs have the same one, else the fingerprint. */
  text: string;
  newest: T;
  jobs: T[];
};

/** Jobs by the fingerprint of their message, the largest group first; jobs come newest first. */
export function byMessage<T extends { error?: { message?: string | null } | null }>(
  jobs: readonly T[],
): MessageGroup<T>[] {
  const groups = new Map<string, MessageGroup<T>>();
  for (const job of jobs) {
    const message = job.error?.message ?? "";
    const name = fingerprint(message);
    const text = cut(oneLine(message));
    const group = groups.get(name);
    if (group === undefined)
      groups.set(name, { fingerprint: name, text, newest: job, jobs: [job] });
    else {
      group.jobs.push(job);
      if (group.text !== text) group.text = name;
    }
  }
  return [...groups.values()].sort((one, other) => other.jobs.length - one.jobs.length);
}
