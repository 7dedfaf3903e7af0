import { inOrder, jsonKind, scalarText } from "./jsonValue";

export type Change =
  | { kind: "added"; path: string; after: unknown }
  | { kind: "removed"; path: string; before: unknown }
  | { kind: "changed"; path: string; before: unknown; after: unknown };

export interface Difference {
  changes: Change[];
  /** More differences exist than were collected. */
  isCut: boolean;
}

const MOST_CHANGES = 500;
const MOST_VISITS = 200_000;

/** The differences of two JSON values, by path, in the order of the second one. */
export function jsonDiff(before: unknown, after: unknown): Difference {
  const changes: Change[] = [];
  const stack: Pair[] = [{ path: "", before, after }];
  let visits = 0;
  while (stack.length > 0) {
    visits += 1;
    if (changes.length >= MOST_CHANGES || visits > MOST_VISITS) return { changes, isCut: true };
    const pair = stack.pop() as Pair;
    if (!("before" in pair)) changes.push({ kind: "added", path: pair.path, after: pair.after });
    else if (!("after" in pair)) {
      changes.push({ kind: "removed", path: pair.path, before: pair.before });
    } else compare(pair as Required<Pair>, stack, changes);
  }
  return { changes, isCut: false };
}

interface Pair {
  path: string;
  before?: unknown;
  after?: unknown;
}

function compare({ path, before, after }: Required<Pair>, stack: Pair[], changes: Change[]): void {
  if (before === after) return;
  const kind = jsonKind(before);
  const isSameKind = kind === jsonKind(after);
  if (isSameKind && (kind === "object" || kind === "array")) {
    pushChildren(path, kind, before as Branch, after as Branch, stack);
  } else if (!isSameKind || scalarText(before) !== scalarText(after)) {
    changes.push({ kind: "changed", path: path || "(whole value)", before, after });
  }
}

type Branch = Record<string, unknown>;

function pushChildren(
  path: string,
  kind: "object" | "array",
  before: Branch,
  after: Branch,
  stack: Pair[],
): void {
  const pairs: Pair[] = [];
  for (const key of Object.keys(after)) {
    const childPath = readablePath(path, kind, key);
    if (Object.hasOwn(before, key)) {
      pairs.push({ path: childPath, before: before[key], after: after[key] });
    } else pairs.push({ path: childPath, after: after[key] });
  }
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) {
      pairs.push({ path: readablePath(path, kind, key), before: before[key] });
    }
  }
  for (const pair of pairs.reverse()) stack.push(pair);
}

/** `pages[3].title`, and `["odd key"]` where a dot would mislead. */
function readablePath(parent: string, kind: "object" | "array", key: string): string {
  if (kind === "array") return `${parent}[${key}]`;
  if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return parent ? `${parent}.${key}` : key;
  return `${parent}[${inOrder(JSON.stringify(key))}]`;
}
