import { useCallback, useState } from "react";
import { useKeys } from "../../shell/useKeys";
import type { Job } from "./useJobList";

type Rows = {
  selected: ReadonlySet<string>;
  isAllSelected: boolean;
  currentId: string | null;
  menuId: string | null;
  toggle: (id: string) => void;
  toggleAll: (isSelected: boolean) => void;
  selectMatching: () => void;
  clear: () => void;
  setMenu: (id: string | null) => void;
};

const NONE: ReadonlySet<string> = new Set();

/** The selected rows, and the row where the keyboard is: `j`, `k`, `x`, `Enter`, `.`. */
export function useRows(jobs: readonly Job[], view: string, canSelect: boolean): Rows {
  const [state, setState] = useState({ view, selected: NONE, isAllSelected: false });
  const [currentId, setCurrent] = useState<string | null>(null);
  const [menuId, setMenuId] = useState<string | null>(null);
  const setMenu = useCallback((id: string | null) => {
    setMenuId((before) => {
      // The button that opened the menu was replaced, and cannot get the focus back.
      if (id === null && before !== null) setTimeout(() => focusRow(before));
      return id;
    });
  }, []);
  // Another filter finds other jobs: nothing of before stays selected.
  if (state.view !== view) setState({ view, selected: NONE, isAllSelected: false });

  const toggle = useCallback((id: string) => {
    setState((before) => {
      const selected = new Set(before.selected);
      if (!selected.delete(id)) selected.add(id);
      return { ...before, selected, isAllSelected: false };
    });
  }, []);
  const select = (selected: ReadonlySet<string>, isAllSelected = false) =>
    setState((before) => ({ ...before, selected, isAllSelected }));

  const move = (step: number) => {
    const at = jobs.findIndex(({ id }) => id === currentId);
    const next = jobs[Math.min(jobs.length - 1, Math.max(0, at + step))];
    if (next === undefined) return;
    setCurrent(next.id);
    focusRow(next.id)?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(canSelect && { x: () => currentId !== null && toggle(currentId) }),
    ".": () => currentId !== null && setMenu(currentId),
    ...(state.selected.size > 0 && { Escape: () => select(NONE) }),
  });
  return {
    ...state,
    currentId,
    menuId,
    toggle,
    toggleAll: (isSelected) => select(isSelected ? new Set(jobs.map(({ id }) => id)) : NONE),
    selectMatching: () => select(new Set(jobs.map(({ id }) => id)), true),
    clear: () => select(NONE),
    setMenu,
  };
}

function focusRow(id: string): HTMLElement | null {
  if (document.querySelector("[role=dialog], [role=alertdialog]")) return null;
  const row = document.querySelector<HTMLElement>(`[data-job="${id}"]`);
  row?.querySelector<HTMLElement>("[data-open]")?.focus({ preventScroll: true });
  return row;
}
