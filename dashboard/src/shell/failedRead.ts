import type { Read } from "./ErrorNotice";

export type FailingRead = Read & { failureReason: Error | null; data: unknown };

/** The first read that failed, also while it is tried again; null if none did. */
export function failedRead(reads: readonly FailingRead[]): Read | null {
  for (const { error, failureReason, data, refetch } of reads) {
    // With data, one failure is not worth a notice: the next try may succeed.
    const reason = error ?? (data === undefined ? failureReason : null);
    if (reason !== null) return { error: reason, refetch };
  }
  return null;
}
