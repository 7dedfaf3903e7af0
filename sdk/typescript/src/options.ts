/** Refuses unknown options, which JavaScript would silently ignore. */

import { InvalidInput } from "./invalid_input.js";

/** Every name of an interface; a missing one does not compile. */
export type Names<T> = { readonly [K in keyof T]-?: true };

/** Throws InvalidInput at the first option that `known` does not name. */
export function checkOptions<T extends object>(given: T, known: Names<T>, of: string): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidInput(of, "must be an object");
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known).join(", ");
    throw new InvalidInput(of, `${JSON.stringify(name)} is not an option; options are ${names}`);
  }
}
