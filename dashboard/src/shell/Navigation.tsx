import { type FocusEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { useApi } from "../api";
import { Icon } from "../components";
import styles from "./Shell.module.css";
import { pathOf, screenAt, useScreens } from "./screens";

const LIST_ID = "screens";

/** The number of jobs that wait for a decision. */
export function useApprovalCount(): string | null {
  const isReader = useScreens().some(({ route }) => route === "/approvals");
  const counts = useApi("/jobs/counts", undefined, { enabled: isReader });
  const waiting = counts.data?.items.find(({ status }) => status === "awaiting_approval");
  if (!waiting?.count) return null;
  return waiting.is_capped ? `${waiting.count}+` : String(waiting.count);
}

/** The screens: a row; on phones, a list behind a button. */
export function Navigation() {
  const [path] = useLocation();
  const screens = useScreens();
  const approvals = useApprovalCount();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another screen closes the list
  useEffect(() => setOpen(false), [path]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const leave = (event: FocusEvent<HTMLElement>) => {
    if (!event.currentTarget.contains(event.relatedTarget)) setOpen(false);
  };
  const count = approvals !== null && <span className={styles.count}>{approvals}</span>;
  return (
    <nav
      className={styles.navigation}
      aria-label="Screens"
      onBlur={leave}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isOpen) close();
      }}
    >
      <button
        ref={button}
        type="button"
        className={styles.screensButton}
        aria-expanded={isOpen}
        aria-controls={LIST_ID}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="menu" />
        {screenAt(path, screens)?.name ?? "Screens"}
        {approvals !== null && <span className={styles.count}>{approvals} to approve</span>}
      </button>
      <div id={LIST_ID} className={styles.screens} data-open={isOpen || undefined}>
        {screens
          .filter(({ isInNavigation }) => isInNavigation)
          .map((screen) => (
            <NavigationLink key={screen.name} to={pathOf(screen)} onOpen={() => setOpen(false)}>
              {screen.name}
              {screen.name === "Approvals" && count}
            </NavigationLink>
          ))}
      </div>
    </nav>
  );
}

type LinkProps = { to: string; onOpen: () => void; children: ReactNode };

function NavigationLink({ to, onOpen, children }: LinkProps) {
  const [path] = useLocation();
  const isHere = to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
  return (
    <Link
      href={to}
      className={styles.screen}
      aria-current={isHere ? "page" : undefined}
      onClick={onOpen}
    >
      {children}
    </Link>
  );
}
