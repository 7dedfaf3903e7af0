import { Component, type ReactNode } from "react";
import { Button } from "./Button";
import { isLoadError } from "./loadError";
import { Notice } from "./Notice";

export interface ErrorBoundaryProps {
  children: ReactNode;
  /** Another value, such as the path, clears the error. */
  resetKey?: unknown;
}

interface State {
  error: Error | null;
}

/** Keeps the rest of the page alive when a part of it cannot be drawn. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override componentDidUpdate(previous: ErrorBoundaryProps): void {
    if (this.state.error && previous.resetKey !== this.props.resetKey) {
      this.setState({ error: null });
    }
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    if (isLoadError(this.state.error)) return <NotLoaded />;
    return (
      <Notice
        kind="error"
        live
        title="This part of the page could not be shown"
        action={
          <>
            <Button size="sm" onPress={() => this.setState({ error: null })}>
              Try again
            </Button>
            <Button size="sm" variant="quiet" onPress={() => location.reload()}>
              Reload the page
            </Button>
          </>
        }
      >
        {this.state.error.message}
      </Notice>
    );
  }
}

/** A part of the dashboard itself is missing. Browsers do not load a failed module again. */
function NotLoaded() {
  return (
    <Notice
      kind="error"
      live
      title="This screen could not be loaded"
      action={
        <Button size="sm" onPress={() => location.reload()}>
          Reload the page
        </Button>
      }
    >
      The server does not respond, or it was upgraded and has a newer dashboard.
    </Notice>
  );
}
