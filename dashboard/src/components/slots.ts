/** More slots than this are drawn as a bar: nobody counts forty boxes. */
export const MOST_BOXES = 20;

export type SlotLayout =
  | { kind: "boxes"; used: number; free: number; over: number }
  | { kind: "bar"; percent: number; over: number }
  | { kind: "unbounded" }
  | { kind: "none" };

/** How to draw the slots of a lane. `over` counts jobs that still run after the limit was lowered. */
export function slotLayout(used: number, total: number | null): SlotLayout {
  if (total === null) return { kind: "unbounded" };
  if (total === 0 && used === 0) return { kind: "none" };
  const over = Math.max(0, used - total);
  if (Math.max(used, total) <= MOST_BOXES) {
    return { kind: "boxes", used: used - over, free: Math.max(0, total - used), over };
  }
  const percent = total === 0 ? 100 : Math.min(100, (used / total) * 100);
  return { kind: "bar", percent, over };
}

export function slotWords(used: number, total: number | null): string {
  if (total === null) return `${used} in use, no limit`;
  const words = `${used} of ${total} ${total === 1 ? "slot" : "slots"} in use`;
  return used > total ? `${words}, ${used - total} above the limit` : words;
}
