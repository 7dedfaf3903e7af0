/** The keyboard map of the whole dashboard. */
export type KeyHandlers = Record<string, () => void>;

const TYPING =
  "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true], [role=textbox], [role=combobox]";
// The first key of every sequence: after any other key, a key stands alone.
const FIRST_KEY = "g";
const SEQUENCE_MS = 1000;

/** Whether a key belongs to what has the focus, or to an open dialog or menu. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest(TYPING)) return event.key !== "Escape";
  return document.querySelector("[role=dialog], [role=alertdialog], [role=menu]") !== null;
}

/** Call the handler of a key, or of two keys in a row such as `g j`. */
export function listenToKeys(handlers: KeyHandlers): () => void {
  let startedAt = Number.NEGATIVE_INFINITY;
  const onKey = (event: KeyboardEvent) => {
    if (isTaken(event)) return;
    const isSecond = event.timeStamp - startedAt < SEQUENCE_MS;
    const handler = handlers[isSecond ? `${FIRST_KEY} ${event.key}` : event.key];
    const isFirst = !isSecond && event.key === FIRST_KEY;
    startedAt = isFirst ? event.timeStamp : Number.NEGATIVE_INFINITY;
    if (handler === undefined) return;
    event.preventDefault();
    handler();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
