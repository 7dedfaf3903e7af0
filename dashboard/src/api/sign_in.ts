import { linkSecret } from "./link";
import { Problem, Unreachable } from "./problem";
import { request } from "./request";
import { ROOT } from "./root";
import { session } from "./session";

/** Find out who uses this tab. */
export async function restoreSession(): Promise<void> {
  try {
    session.signedIn(await request("get", "/me"));
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    session.signedOut();
  }
}

/** Sign in with a token, or with a one-time link or its secret. */
export async function signIn(given: string): Promise<void> {
  const text = given.trim();
  const link = linkSecret(text);
  const before = session.token;
  session.keepToken(link === null ? text : null);
  if (link !== null) await openLink(link);
  const response = await fetch(`${ROOT}me`, {
    headers: link === null ? { Authorization: `Bearer ${text}` } : {},
  }).catch((error: unknown) => {
    throw new Unreachable(error);
  });
  if (!response.ok) {
    session.keepToken(before);
    throw new Problem(response.status, await response.json().catch(() => ({})));
  }
  session.signedIn(await response.json());
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
