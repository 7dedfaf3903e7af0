import { useMemo } from "react";
import { allows, useMe } from "../api";
import { SCREENS, type Screen } from "../pages";

/** The screens that this person may see. */
export function useScreens(): Screen[] {
  const me = useMe();
  return useMemo(
    () => SCREENS.filter(({ needs }) => needs.length === 0 || needs.some((one) => allows(me, one))),
    [me],
  );
}

/** The path of a screen without the name in it. */
export const pathOf = ({ route }: Screen): string => route.split("/:")[0] || "/";

/** The screen of a path. */
export function screenAt(path: string, screens: readonly Screen[]): Screen | undefined {
  return screens.find((screen) => {
    const start = pathOf(screen);
    return path === start || (start !== "/" && path.startsWith(`${start}/`));
  });
}
