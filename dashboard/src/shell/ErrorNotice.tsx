import { messageOf, Problem } from "../api";
import { Button, Notice } from "../components";

export type Read = { error: Error | null; refetch: () => unknown };

/** The error of a read, with a way to try again; nothing without an error. */
export function ErrorNotice({ of: read }: { of: Read }) {
  if (read.error === null) return null;
  const request = read.error instanceof Problem ? read.error.requestId : null;
  return (
    <Notice
      kind="error"
      title={messageOf(read.error)}
      action={<Button onPress={() => void read.refetch()}>Try again</Button>}
    >
      {request !== null && `Request ${request}`}
    </Notice>
  );
}
