import createClient, { type MaybeOptionalInit } from "openapi-fetch";
import type { HttpMethod, PathsWithMethod, SuccessResponseJSON } from "openapi-typescript-helpers";
import type { paths } from "./_generated/schema";
import { parseJson, writeJson } from "./json";
import { Problem, Unreachable } from "./problem";
import { ROOT } from "./root";
import { session } from "./session";

export type Method = Extract<HttpMethod, "get" | "post" | "put" | "patch" | "delete">;
export type Path<M extends Method> = PathsWithMethod<paths, M>;
export type Operation<M extends Method, P extends Path<M>> =
  paths[P] extends Record<M, infer O> ? O : never;
export type Init<M extends Method, P extends Path<M>> = MaybeOptionalInit<paths[P], M>;
export type Data<M extends Method, P extends Path<M>> = SuccessResponseJSON<
  Extract<Operation<M, P>, Record<string | number, unknown>>
>;

export const KEY_HEADER = "Idempotency-Key";
// These have no use for an idempotency key.
const WITHOUT_KEY = /\/(login|logout|admin\/tokens)$/;

const client = createClient<paths>({
  baseUrl: ROOT.replace(/\/$/, ""),
  bodySerializer: (body) => writeJson(body),
  fetch: fetchAsCaller,
});

/** Send one request; a refusal becomes a `Problem`. */
export async function request<M extends Method, P extends Path<M>>(
  method: M,
  path: P,
  init?: Init<M, P>,
): Promise<Data<M, P>> {
  const send = client.request as unknown as (
    method: string,
    path: string,
    init: unknown,
  ) => Promise<{ data?: string; error?: unknown; response: Response }>;
  const { data, error, response } = await send(method, path, { ...init, parseAs: "text" });
  if (!response.ok) {
    const body = typeof error === "object" && error !== null ? error : {};
    throw new Problem(response.status, body, response.headers.get("X-Request-Id"));
  }
  return (data ? parseJson(data) : undefined) as Data<M, P>;
}

/** Fetch with the caller's credentials; after the end of a session, repeat after the sign-in. */
export async function fetchAsCaller(wanted: Request): Promise<Response> {
  const isKeyed = wanted.method === "POST" && !WITHOUT_KEY.test(wanted.url);
  const key = isKeyed ? (wanted.headers.get(KEY_HEADER) ?? randomKey()) : null;
  for (;;) {
    const sent = wanted.clone();
    const state = session.state;
    if (session.token !== null) sent.headers.set("Authorization", `Bearer ${session.token}`);
    else if ("me" in state && state.me.csrf) sent.headers.set("X-CSRF-Token", state.me.csrf);
    if (key === null) sent.headers.delete(KEY_HEADER);
    else sent.headers.set(KEY_HEADER, key);
    const response = await fetch(sent).catch((error: unknown) => {
      throw sent.signal.aborted ? error : new Unreachable(error);
    });
    if (response.status !== 401 || !("me" in state)) return response;
    // Somebody may have signed in since it was sent. Another person must not repeat it.
    const now = session.state;
    if (now === state || now.phase === "expired") await session.expired();
    else if (now.phase !== "in" || now.me.id !== state.me.id) return response;
  }
}

export function randomKey(): string {
  // `crypto.randomUUID` is missing on plain HTTP.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
