type Lane = { name: string; slots_used: number; depth: number; enabled: boolean };

const MOST_LANES = 20;

/** The lanes that the overview shows: all, or of many lanes those where something happens. */
export function notableLanes<L extends Lane>(
  lanes: readonly L[],
  hasEnded: (lane: string) => boolean,
): L[] {
  if (lanes.length <= MOST_LANES) return [...lanes];
  const rank = (lane: L) => {
    if (lane.depth > 0) return 0;
    if (lane.slots_used > 0 || !lane.enabled) return 1;
    return hasEnded(lane.name) ? 2 : 3;
  };
  const chosen = new Set([...lanes].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_LANES));
  return lanes.filter((lane) => chosen.has(lane));
}
