import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Redirect, Route, Router, Switch } from "wouter";
import { Problem, UI_PATH, useSession } from "./api";
import { EmptyState, PageHeader, SkeletonLines, ToastProvider } from "./components";
import { pathOf } from "./pages";
import { useScreens } from "./shell/Navigation";
import { Shell } from "./shell/Shell";
import { SignInPage } from "./shell/SignIn";

const cache = new QueryClient({
  defaultOptions: {
    queries: {
      // The stream says what has changed.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && !(error instanceof Problem && error.status < 500),
    },
  },
});

export function App() {
  return (
    <QueryClientProvider client={cache}>
      <ToastProvider>
        <Router base={UI_PATH}>
          <Content />
        </Router>
      </ToastProvider>
    </QueryClientProvider>
  );
}

function Content() {
  const { phase } = useSession();
  if (phase === "starting") return <SkeletonLines count={6} />;
  if (phase === "out") return <SignInPage />;
  return (
    <Shell>
      <Screens />
    </Shell>
  );
}

function Screens() {
  const screens = useScreens();
  const first = screens[0];
  return (
    <Switch>
      {screens.map(({ route, page: Page }) => (
        <Route key={route} path={route}>
          <Page />
        </Route>
      ))}
      {/* For people who may not see the overview. */}
      {first && (
        <Route path="/">
          <Redirect to={pathOf(first)} replace />
        </Route>
      )}
      <Route>
        <PageHeader title="No such page" />
        <EmptyState icon="search" title="Nothing is shown at this address">
          It is wrong, or you lack the permission for this page.
        </EmptyState>
      </Route>
    </Switch>
  );
}
