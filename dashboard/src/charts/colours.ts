import { useSyncExternalStore } from "react";
import { usePreferences } from "../shell/preferences";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** `light` or `dark`, as shown now. */
export function useTheme(): "light" | "dark" {
  const { theme } = usePreferences();
  const isSystemDark = useSyncExternalStore(
    (listener) => {
      dark.addEventListener("change", listener);
      return () => dark.removeEventListener("change", listener);
    },
    () => dark.matches,
  );
  if (theme !== "system") return theme;
  return isSystemDark ? "dark" : "light";
}

/** The colour of a token where the element stands: a canvas does not know tokens. */
export function tokenColour(element: Element, token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${token})`;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** The same colour with another opacity. */
export function faded(colour: string, opacity: number): string {
  const parts = colour.match(/[\d.]+/g) ?? [];
  return `rgba(${parts.slice(0, 3).join(", ")}, ${opacity})`;
}
