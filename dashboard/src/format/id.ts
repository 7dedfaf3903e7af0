/**
 * A short name for a job that every command accepts: the time of its submit, and the end of its id,
 * because jobs of one batch share the time.
 */
export function shortId(id: string): string {
  return `${id.slice(0, 13)}…${id.slice(-6)}`;
}
