import { childCount, type JsonKind, jsonKind } from "./jsonValue";

/** How many children of one node are shown before "show more". */
export const CHUNK = 100;

export interface JsonRow {
  /** Unique in the tree: a JSON pointer. */
  path: string;
  depth: number;
  /** The name in an object, the index in an array, null for the root. */
  key: string | number | null;
  kind: JsonKind;
  value: unknown;
  /** Children of objects and arrays. */
  count: number;
  isOpen: boolean;
}

/** The row after the shown children of a node that has more. */
export interface MoreRow {
  path: string;
  depth: number;
  more: { parent: string; hidden: number };
}

export type TreeRow = JsonRow | MoreRow;

export interface TreeState {
  /** Paths that were opened or closed by hand. */
  toggled: ReadonlyMap<string, boolean>;
  /** How many children to show, where "show more" was used. */
  shown: ReadonlyMap<string, number>;
}

export const emptyTree: TreeState = { toggled: new Map(), shown: new Map() };

/** Nodes open by themselves when they are near the root and small. */
export function opensByItself(depth: number, count: number): boolean {
  return depth === 0 || (depth <= 2 && count <= 20);
}

/** The visible rows of a tree, in order. Closed nodes and hidden children are never visited. */
export function visibleRows(value: unknown, state: TreeState): TreeRow[] {
  const rows: TreeRow[] = [];
  const stack: Pending[] = [{ path: "", depth: 0, key: null, value }];
  while (stack.length > 0) {
    const item = stack.pop() as Pending;
    if ("more" in item) {
      rows.push(item);
      continue;
    }
    const kind = jsonKind(item.value);
    const isBranch = kind === "object" || kind === "array";
    const count = isBranch ? childCount(item.value) : 0;
    const isOpen = count > 0 && (state.toggled.get(item.path) ?? opensByItself(item.depth, count));
    rows.push({ ...item, kind, count, isOpen });
    if (isOpen) pushChildren(stack, item, kind, count, state);
  }
  return rows;
}

type Pending =
  | { path: string; depth: number; key: string | number | null; value: unknown }
  | MoreRow;

function pushChildren(
  stack: Pending[],
  parent: Exclude<Pending, MoreRow>,
  kind: JsonKind,
  count: number,
  state: TreeState,
): void {
  const shown = Math.min(count, state.shown.get(parent.path) ?? CHUNK);
  const depth = parent.depth + 1;
  if (shown < count) {
    const more = { parent: parent.path, hidden: count - shown };
    stack.push({ path: `${parent.path}/…`, depth, more });
  }
  const keys = kind === "object" ? Object.keys(parent.value as object) : null;
  for (let at = shown - 1; at >= 0; at -= 1) {
    const key = keys ? (keys[at] as string) : at;
    const value = (parent.value as Record<string | number, unknown>)[key];
    stack.push({ path: `${parent.path}/${pointerPart(key)}`, depth, key, value });
  }
}

/** A key as a part of a JSON pointer (RFC 6901). */
export function pointerPart(key: string | number): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}

export function toggle(state: TreeState, row: JsonRow): TreeState {
  const toggled = new Map(state.toggled);
  toggled.set(row.path, !row.isOpen);
  return { ...state, toggled };
}

export function showMore(state: TreeState, parent: string): TreeState {
  const shown = new Map(state.shown);
  shown.set(parent, (shown.get(parent) ?? CHUNK) + CHUNK * 5);
  return { ...state, shown };
}

/** Open every branch, but no more than the budget, nearest to the root first. */
export function openAll(value: unknown, budget = 2000): TreeState {
  const toggled = new Map<string, boolean>();
  const queue: { path: string; value: unknown }[] = [{ path: "", value }];
  let visited = 0;
  for (let at = 0; at < queue.length && visited < budget; at += 1) {
    const node = queue[at] as { path: string; value: unknown };
    const kind = jsonKind(node.value);
    if (kind !== "object" && kind !== "array") continue;
    toggled.set(node.path, true);
    const keys = kind === "object" ? Object.keys(node.value as object) : null;
    const shown = Math.min(CHUNK, keys ? keys.length : (node.value as unknown[]).length);
    visited += shown;
    for (let child = 0; child < shown; child += 1) {
      const key = keys ? (keys[child] as string) : child;
      const childValue = (node.value as Record<string | number, unknown>)[key];
      queue.push({ path: `${node.path}/${pointerPart(key)}`, value: childValue });
    }
  }
  return { toggled, shown: new Map() };
}
