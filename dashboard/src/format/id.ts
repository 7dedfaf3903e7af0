/** A short name for a job: the end of its id, because ids begin with the time. */
export function shortId(id: string): string {
  return id.slice(-8);
}
