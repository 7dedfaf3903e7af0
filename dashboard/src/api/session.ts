import type { components } from "./_generated/schema";

export type Me = components["schemas"]["MeOut"];

/**
 * `starting`: not known yet. `out`: nobody is signed in. `expired`: the session ended while a page
 * was open; requests wait until somebody signs in again.
 */
export type SessionState =
  | { phase: "starting" }
  | { phase: "out" }
  | { phase: "in"; me: Me }
  | { phase: "expired"; me: Me };

const TOKEN_KEY = "laneway.token";

/** Who uses this tab: by the server's session cookie, or by a token kept for this tab only. */
class Session {
  #state: SessionState = { phase: "starting" };
  #listeners = new Set<() => void>();
  #waiting: Array<() => void> = [];

  get state(): SessionState {
    return this.#state;
  }

  get token(): string | null {
    return sessionStorage.getItem(TOKEN_KEY);
  }

  keepToken(token: string | null): void {
    if (token === null) sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, token);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  signedIn(me: Me): void {
    const before = this.#state;
    const isAnother = "me" in before && before.me.id !== me.id;
    this.#become({ phase: "in", me });
    if (isAnother) {
      // Another person must not send what the first one typed: requests that wait are dropped.
      location.reload();
      return;
    }
    for (const resume of this.#waiting.splice(0)) resume();
  }

  signedOut(): void {
    const wasIn = "me" in this.#state;
    this.keepToken(null);
    // A new page has none of the person's data, and none of the requests that wait.
    if (wasIn) location.reload();
    else this.#become({ phase: "out" });
  }

  /** Ask for a new sign-in; resolves when there is one. */
  expired(): Promise<void> {
    if (this.#state.phase === "in") this.#become({ phase: "expired", me: this.#state.me });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #become(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

export const session = new Session();
