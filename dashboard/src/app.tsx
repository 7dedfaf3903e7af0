import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Redirect, Route, Router, Switch } from "wouter";
import { Problem, UI_PATH, useCan, useSession } from "./api";
import { ToastProvider } from "./components";
import { NoSuchPage } from "./shell/NoSuchPage";
import { Shell } from "./shell/Shell";
import { SignInPage } from "./shell/SignIn";
import { Starting } from "./shell/Starting";
import { pathOf, useScreens } from "./shell/screens";

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
  if (phase === "starting") return <Starting />;
  if (phase === "out") return <SignInPage />;
  return (
    <Shell>
      <Screens />
    </Shell>
  );
}

function Screens() {
  const screens = useScreens();
  const isApprover = useCan("jobs:approve");
  // People who may not see the overview start with their work.
  const start = isApprover ? "/approvals" : screens.map(pathOf)[0];
  return (
    <Switch>
      {screens.map(({ route, page: Page }) => (
        <Route key={route} path={route}>
          <Page />
        </Route>
      ))}
      <Route path="/">
        <Redirect to={start ?? "/settings"} replace />
      </Route>
      <Route>
        <NoSuchPage />
      </Route>
    </Switch>
  );
}
