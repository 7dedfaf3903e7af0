/** The keyboard map of the whole dashboard. */
export type KeyHandlers = Record<string, () => void>;

const TYPING = "input, textarea, select, [contenteditable=true], [role=textbox], [role=combobox]";
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
  let first: { key: string; at: number } | null = null;
  const onKey = (event: KeyboardEvent) => {
    if (isTaken(event)) return;
    const isSecond = first !== null && event.timeStamp - first.at < SEQUENCE_MS;
    const name = isSecond && first ? `${first.key} ${event.key}` : event.key;
    const handler = handlers[name];
    first = handler === undefined ? { key: event.key, at: event.timeStamp } : null;
    if (handler === undefined) return;
    event.preventDefault();
    handler();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}
