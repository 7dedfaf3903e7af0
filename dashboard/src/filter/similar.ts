/** The candidate that a person most likely meant; null if none is near. */
export function similar(word: string, candidates: readonly string[]): string | null {
  const wanted = word.toLowerCase();
  const near = candidates
    .map((candidate) => [candidate, distance(wanted, candidate.toLowerCase())] as const)
    .filter(([candidate, edits]) => edits <= Math.max(1, Math.floor(candidate.length / 3)))
    .sort(([, one], [, other]) => one - other);
  const inside = candidates.find((candidate) => wanted.length > 2 && candidate.includes(wanted));
  return near[0]?.[0] ?? inside ?? null;
}

/** The number of letters to add, remove, change or swap with the next. */
function distance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    const above = rows[i - 1] ?? [];
    for (let j = 1; j <= other.length; j += 1) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      let best = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + cost);
      if (one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        best = Math.min(best, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    rows.push(row);
  }
  return rows[one.length]?.[other.length] ?? 0;
}
