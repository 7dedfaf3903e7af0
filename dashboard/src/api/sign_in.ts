import { linkSecret } from "./link";
import { Problem, Unreachable } from "./problem";
import { request } from "./request";
import { ROOT } from "./root";
import { type Me, session } from "./session";

/** Find out who uses this tab. */
export async function restoreSession(): Promise<void> {
  try {
    session.signedIn(await request("get", "/me"));
    followPerson();
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    session.signedOut();
  }
}

/** Sign in with a token, or with a one-time link or its secret. */
export async function signIn(given: string): Promise<void> {
  const text = given.trim();
  const link = linkSecret(text);
  if (link !== null) await openLink(link);
  const token = link === null ? text : null;
  const me = await whoHas(token);
  session.keepToken(token);
  session.signedIn(me);
  followPerson();
}

// Other tabs of this browser. A tab that signs in again after the end of its session keeps it.
let tabs: BroadcastChannel | null = null;

/** Notice who signs in with another tab of this browser. */
function followPerson(): void {
  if (session.token !== null) return;
  tabs ??= watchTabs();
  // Another person may have signed in with this tab.
  tabs.postMessage("started");
}

function watchTabs(): BroadcastChannel {
  const channel = new BroadcastChannel(`laneway.session ${ROOT}`);
  const look = () => {
    if (!document.hidden) void checkPerson();
  };
  channel.addEventListener("message", () => void checkPerson());
  window.addEventListener("focus", look);
  document.addEventListener("visibilitychange", look);
  return channel;
}

/**
 * Take over the session of another tab. Its sign-in ended the session of this tab, which may have
 * noticed or not: the same person goes on, another one gets a new page.
 */
async function checkPerson(): Promise<void> {
  if (session.token !== null) return;
  const me = await whoHas(null).catch(() => null);
  const { state } = session;
  if (me === null || !("me" in state)) return;
  const isSame = state.me.id === me.id && state.me.csrf === me.csrf;
  if (state.phase === "expired" || !isSame) session.signedIn(me);
}

/** The principal with this token, or with the session of this browser. */
async function whoHas(token: string | null): Promise<Me> {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(`${ROOT}me`, { headers }).catch((error: unknown) => {
    throw new Unreachable(error);
  });
  if (!response.ok) {
    throw new Problem(response.status, await response.json().catch(() => ({})));
  }
  return response.json();
}

export async function signOut(): Promise<void> {
  if (session.token === null) await request("post", "/logout");
  session.signedOut();
}

async function openLink(secret: string): Promise<void> {
  const response = await fetch(`${ROOT}login`, {
    method: "POST",
    body: new URLSearchParams({ link: secret }),
    headers: { Accept: "application/problem+json" },
    // The redirect leads to the page that is open already.
    redirect: "manual",
  }).catch((error: unknown) => {
    throw new Unreachable(error);
  });
  if (response.type === "opaqueredirect" || response.ok) return;
  throw new Problem(response.status, await response.json().catch(() => ({})));
}
