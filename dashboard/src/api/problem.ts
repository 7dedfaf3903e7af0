import type { components } from "./_generated/schema";

type ProblemBody = Partial<components["schemas"]["Problem"]>;

/** A refused request, as the server explains it. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly fields: ReadonlyArray<components["schemas"]["FieldError"]>;
  readonly requestId: string | null;

  constructor(status: number, body: ProblemBody, requestId: string | null = null) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code ?? "unknown";
    this.fields = body.errors ?? [];
    this.requestId = requestId;
  }
}

/** The server could not be reached, or its answer was cut off. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";

  constructor(cause: unknown) {
    super("The server cannot be reached.", { cause });
  }
}

/** The sentence to show for any error. */
export function messageOf(error: unknown): string {
  if (error instanceof Problem && error.fields.length > 0) {
    return error.fields.map((each) => `${each.field}: ${each.rule}`).join("\n");
  }
  return error instanceof Error ? error.message : String(error);
}
