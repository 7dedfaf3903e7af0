import { type ReactNode, useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useApi } from "../api";
import styles from "./Shell.module.css";
import { pathOf, useScreens } from "./screens";

/** The number of jobs that wait for a decision. */
export function useApprovalCount(): string | null {
  const isReader = useScreens().some(({ route }) => route === "/approvals");
  const counts = useApi("/jobs/counts", undefined, { enabled: isReader });
  const waiting = counts.data?.items.find(({ status }) => status === "awaiting_approval");
  if (!waiting?.count) return null;
  return waiting.is_capped ? `${waiting.count}+` : String(waiting.count);
}

export function Navigation() {
  const screens = useScreens();
  const approvals = useApprovalCount();
  return (
    <nav className={styles.navigation} aria-label="Screens">
      {screens
        .filter(({ isInNavigation }) => isInNavigation)
        .map((screen) => (
          <NavigationLink key={screen.name} to={pathOf(screen)}>
            {screen.name}
            {screen.name === "Approvals" && approvals !== null && (
              <span className={styles.count}>{approvals}</span>
            )}
          </NavigationLink>
        ))}
    </nav>
  );
}

function NavigationLink({ to, children }: { to: string; children: ReactNode }) {
  const [path] = useLocation();
  const isHere = to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    // On phones the row of screens scrolls.
    if (isHere) link.current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [isHere]);
  return (
    <Link ref={link} href={to} className={styles.screen} aria-current={isHere ? "page" : undefined}>
      {children}
    </Link>
  );
}
