/** A part of a reason's message: plain text, or something with a page to link to. */
export type ReasonPart =
  | { kind: "text"; text: string }
  | { kind: "command"; text: string }
  | { kind: "time"; at: string }
  | { kind: "length"; seconds: number }
  | { kind: "job"; id: string }
  | { kind: "lane"; name: string }
  | { kind: "limit"; name: string };

export type Reason = { code: string; message: string };

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:Z|[+-]\\d\\d:\\d\\d)";
// Names of limits have no spaces around them in messages; a colon or a verb ends them.
const LIMIT = /^the limit (.+?)(?:: (?:room for|fully used)| has max_concurrent 0)/;

/** Split a reason's message so that what blocks the job can be linked. */
export function reasonParts(reason: Reason, lane: string): ReasonPart[] {
  const limit = LIMIT.exec(reason.message)?.[1];
  const names = [
    `(?<command>\`[^\`]+\`)`,
    `(?<job>\\b${UUID}\\b)`,
    `(?<time>\\b${TIME})`,
    "\\b(?<seconds>\\d{1,9}) s\\b",
    `(?<=\\blane )(?<lane>${escaped(lane)})(?![\\w-])`,
    ...(limit === undefined ? [] : [`(?<=^the limit )(?<limit>${escaped(limit)})`]),
  ];
  const pattern = new RegExp(names.join("|"), "g");
  const parts: ReasonPart[] = [];
  let end = 0;
  for (const match of reason.message.matchAll(pattern)) {
    if (match.index > end)
      parts.push({ kind: "text", text: reason.message.slice(end, match.index) });
    parts.push(partOf(match.groups ?? {}));
    end = match.index + match[0].length;
  }
  if (end < reason.message.length) parts.push({ kind: "text", text: reason.message.slice(end) });
  return parts.map((part, at) => (at === 0 ? sentence(part) : part));
}

function partOf(found: Record<string, string | undefined>): ReasonPart {
  if (found.command) return { kind: "command", text: found.command.slice(1, -1) };
  if (found.job) return { kind: "job", id: found.job };
  if (found.time) return { kind: "time", at: found.time };
  if (found.seconds) return { kind: "length", seconds: Number(found.seconds) };
  if (found.lane) return { kind: "lane", name: found.lane };
  return { kind: "limit", name: found.limit ?? "" };
}

function sentence(part: ReasonPart): ReasonPart {
  if (part.kind !== "text") return part;
  return { kind: "text", text: part.text.charAt(0).toUpperCase() + part.text.slice(1) };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The page where the cause can be changed, apart from links inside the message. */
export function causePage(code: string): { path: string; name: string } | null {
  if (code === "paused") return { path: "/lanes", name: "Lanes" };
  return WORKER_CODES.has(code) ? { path: "/workers", name: "Workers" } : null;
}

const WORKER_CODES = new Set([
  "no_worker",
  "type_not_handled",
  "lane_not_served",
  "workers_drained",
  "worker_silent",
  "workers_stopping",
  "workers_full",
  "lease_lapsed",
]);
