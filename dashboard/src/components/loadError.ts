// The words of Vite, Chromium, Firefox and Safari.
const WORDS =
  /unable to preload|failed to fetch dynamically|error loading dynamically|importing a module script/i;

/** Whether a screen's own code or styles could not be loaded. */
export function isLoadError({ message }: Error): boolean {
  return WORDS.test(message);
}
