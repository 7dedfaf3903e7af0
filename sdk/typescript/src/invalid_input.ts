/** An input breaks a rule. */
export class InvalidInput extends Error {
  override name = "InvalidInput";

  constructor(
    readonly field: string,
    readonly rule: string,
  ) {
    super(`${field}: ${rule}`);
  }
}
