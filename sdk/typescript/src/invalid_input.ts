/** An input breaks a rule. */
export class InvalidInput extends Error {
  override name: string = "InvalidInput";

  constructor(
    readonly field: string,
    readonly rule: string,
  ) {
    super(`${field}: ${rule}`);
  }
}

/**
 * A result of a handler or step, or a checkpoint, that cannot be stored. The job fails without a
 * retry: the next attempt would end alike.
 */
export class InvalidResult extends InvalidInput {
  override name = "InvalidResult";

  /** Calls fn; an InvalidInput of it becomes an InvalidResult. */
  static from<T>(fn: () => T): T {
    try {
      return fn();
    } catch (error) {
      throw error instanceof InvalidInput ? new InvalidResult(error.field, error.rule) : error;
    }
  }
}
