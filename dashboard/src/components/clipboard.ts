/**
 * Copy text. Browsers offer `navigator.clipboard` on https and localhost only, so plain http
 * falls back to the copy command. Returns whether it worked.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // Refused by a permission: try the old way.
  }
  return copyBySelection(text);
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  // Inside an open dialog, an element outside of it cannot take the focus.
  const place = focused?.closest("[role=dialog], [role=alertdialog]") ?? document.body;
  // Some browsers copy only when something is selected. The text itself goes in by the event:
  // a text area with 1 MiB takes seconds to lay out.
  const area = document.createElement("textarea");
  area.value = " ";
  area.readOnly = true;
  area.style.position = "fixed";
  area.style.opacity = "0";
  place.append(area);
  area.select();
  let isSet = false;
  const fill = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopPropagation();
    isSet = Boolean(event.clipboardData);
  };
  document.addEventListener("copy", fill, true);
  try {
    return document.execCommand("copy") && isSet;
  } catch {
    return false;
  } finally {
    document.removeEventListener("copy", fill, true);
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}
