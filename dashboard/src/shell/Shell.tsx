import { type ReactNode, Suspense, useCallback, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { LiveProvider, useSession, useTopics } from "../api";
import { Dialog, ErrorBoundary, ReachContext, ShortcutHelp, SkeletonLines } from "../components";
import { AccountMenu, ThemeSwitch } from "./AccountMenu";
import { LiveIndicator } from "./LiveIndicator";
import { Mark } from "./Mark";
import { Navigation, useApprovalCount } from "./Navigation";
import { SEARCH_ID, Search } from "./Search";
import styles from "./Shell.module.css";
import { SignInAgain } from "./SignInAgain";
import { pathOf, screenAt, useScreens } from "./screens";
import { shortcuts } from "./shortcuts";
import { useKeys } from "./useKeys";

/** The frame around every screen; only for people who are signed in. */
export function Shell({ children }: { children: ReactNode }) {
  return (
    <LiveProvider>
      <Frame>{children}</Frame>
    </LiveProvider>
  );
}

function Frame({ children }: { children: ReactNode }) {
  const [path, go] = useLocation();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const screens = useScreens();
  const approvals = useApprovalCount();
  const { phase } = useSession();
  useTopics(["approvals", "lanes"]);
  useKeys({
    "/": () => document.getElementById(SEARCH_ID)?.focus(),
    "?": () => setHelpOpen(true),
    ...Object.fromEntries(
      screens.flatMap((screen) =>
        screen.key ? [[`g ${screen.key}`, () => go(pathOf(screen))]] : [],
      ),
    ),
  });
  useEffect(() => {
    const name = screenAt(path, screens)?.name;
    const count = approvals === null ? "" : `(${approvals}) `;
    document.title = `${count}${name === undefined ? "" : `${name} · `}Laneway`;
  }, [approvals, path, screens]);
  const isReachable = useCallback(
    (wanted: string) => screenAt(wanted, screens) !== undefined,
    [screens],
  );
  return (
    <ReachContext value={isReachable}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <header className={styles.header}>
        <div className={styles.bar}>
          <Link href="/" className={styles.brand}>
            <Mark />
            Laneway
          </Link>
          <Search />
          <LiveIndicator />
          <ThemeSwitch />
          <AccountMenu onHelp={() => setHelpOpen(true)} />
        </div>
        <Navigation />
      </header>
      <main id="main" className={styles.main} tabIndex={-1}>
        <ErrorBoundary key={path}>
          <Suspense fallback={<SkeletonLines count={8} />}>{children}</Suspense>
        </ErrorBoundary>
      </main>
      <Dialog title="Keyboard shortcuts" isOpen={isHelpOpen} onClose={() => setHelpOpen(false)}>
        <ShortcutHelp groups={shortcuts(screens)} />
      </Dialog>
      {phase === "expired" && <SignInAgain />}
    </ReachContext>
  );
}
