/** Requests to one server: address, token, retries and problem details. */

import { randomUUID } from "node:crypto";

import { type Operations, type Problem, routes } from "../_generated/api.js";
import { type Backoff, LONGEST_TIMER_MS, delayAfter, pause } from "../backoff.js";
import { InvalidInput } from "../invalid_input.js";
import { type Names, checkOptions } from "../options.js";
import { type Logger, stderr } from "../throttled_warnings.js";
import { type Token, checkedToken, currentToken, expiryText, tokenFromEnvironment } from "../token.js";
import { Deadline } from "./deadline.js";
import { ApiError, ServerUnreachable } from "./errors.js";

export interface ClientOptions {
  /** The server's URL, with the path of the API if it has one; by default LANEWAY_SERVER. */
  server?: string | undefined;
  /** A token, or a function that returns it; by default LANEWAY_TOKEN or LANEWAY_TOKEN_FILE. */
  token?: Token | undefined;
  /** How often a request is sent again after an error that may pass; 3 by default. */
  retries?: number | undefined;
  /** The time for each response; 30 s by default. */
  timeoutMs?: number | undefined;
  /** Send the token over plain http to another machine. */
  allowInsecure?: boolean | undefined;
  /** The client's logger; stderr by default. */
  logger?: Logger | undefined;
}

/** Options of every request. */
export interface RequestOptions {
  /** Ends the request, with its pauses and retries, when aborted. */
  signal?: AbortSignal | undefined;
}

/** Options of a request that changes something. */
export interface ChangeOptions extends RequestOptions {
  /**
   * The server acts once for each key, for a day. Without one, each call has its own: its retries act
   * once.
   */
  idempotencyKey?: string | undefined;
}

type Operation = keyof Operations;
export type StreamOperation = "stream_job" | "stream_flow";

interface Request<O extends Operation> extends ChangeOptions {
  id?: string;
  query?: Operations[O]["query"];
  body?: Operations[O]["body"];
}

const KNOWN: Names<ClientOptions> = {
  server: true,
  token: true,
  retries: true,
  timeoutMs: true,
  allowInsecure: true,
  logger: true,
};
const BACKOFF: Backoff = { firstMs: 100, longestMs: 5000 };
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const EXPIRES_HEADER = "Laneway-Token-Expires-In";

export class HttpConnection {
  readonly #base: string;
  readonly #token: Token;
  readonly #retries: number;
  readonly #timeoutMs: number;
  readonly #logger: Logger;
  #hasWarned = false;

  constructor(options: ClientOptions) {
    checkOptions(options, KNOWN, "options of Client");
    const server = options.server ?? process.env.LANEWAY_SERVER;
    if (!server) throw new InvalidInput("server", "must be given, or LANEWAY_SERVER");
    this.#base = checkedServer(server, options.allowInsecure ?? false);
    const token = options.token ?? tokenFromEnvironment();
    this.#token = typeof token === "function" ? token : checkedToken(token);
    this.#retries = checkedNumber("retries", options.retries ?? 3, 0, 100);
    this.#timeoutMs = checkedNumber("timeoutMs", options.timeoutMs ?? 30_000, 1, LONGEST_TIMER_MS);
    this.#logger = options.logger ?? stderr;
  }

  /** Sends a request, again if it may pass, and returns its JSON. */
  async call<O extends Operation>(operation: O, request: Request<O> = {}): Promise<Operations[O]["result"]> {
    const { method, isKeyed } = routes[operation];
    const url = this.#url(operation, request);
    const headers: Record<string, string> = {};
    if (isKeyed) headers["Idempotency-Key"] = checkedKey(request.idempotencyKey ?? randomUUID());
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    if (body !== null) headers["Content-Type"] = "application/json";
    const isRepeatable = isKeyed || method === "GET";
    for (let tries = 1; ; tries++) {
      try {
        const text = await this.#send(url, { method, headers, body }, request.signal);
        return (text === "" ? undefined : parsed(text)) as Operations[O]["result"];
      } catch (error) {
        if (!isRepeatable || tries > this.#retries || !mayPass(error)) throw error;
        await this.pause(tries, error, request.signal);
      }
    }
  }

  /** Opens a stream. Its body ends with the deadline, which covers the wait for the response too. */
  async open(
    operation: StreamOperation,
    id: string,
    lastId: string | undefined,
    deadline: Deadline,
  ): Promise<Response> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastId !== undefined) headers["Last-Event-ID"] = lastId;
    const url = this.#url(operation, { id });
    const response = await this.#fetch(url, { method: "GET", headers }, deadline);
    if (!response.ok) throw await problemOf(response, this.#base);
    return response;
  }

  /** Waits before a request is sent again: longer with each failure, and as long as the server asks. */
  async pause(
    failures: number,
    error: unknown,
    signal: AbortSignal | undefined,
    leastMs = 0,
  ): Promise<void> {
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    await pause(Math.max(asked, leastMs, delayAfter(failures, BACKOFF)), signal);
    signal?.throwIfAborted();
  }

  /** The error for the caller: its own reason after an abort; ServerUnreachable for one of `fetch`. */
  failure(error: unknown, signal: AbortSignal | undefined, why = reason(error)): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof ApiError || error instanceof InvalidInput) return error;
    const message = `the server at ${this.#base} cannot be reached: ${why}`;
    return new ServerUnreachable(message, { cause: error });
  }

  #url<O extends Operation>(operation: O, { id, query }: Request<O>): string {
    if (id !== undefined && !UUID.test(id)) throw new InvalidInput("id", "must be a UUID");
    const path = routes[operation].path.replace(/\{\w+_id\}/, id ?? "");
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) search.append(name, String(value));
    }
    return `${this.#base}${path}${search.size > 0 ? `?${search}` : ""}`;
  }

  async #send(url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<string> {
    const deadline = new Deadline(signal);
    deadline.start(this.#timeoutMs);
    try {
      const response = await this.#fetch(url, init, deadline);
      if (!response.ok) throw await problemOf(response, this.#base);
      return await response.text();
    } catch (error) {
      const why = deadline.isOver ? `no response within ${this.#timeoutMs} ms` : undefined;
      throw this.failure(error, signal, why);
    } finally {
      deadline.end();
    }
  }

  async #fetch(url: string, init: RequestInit, { signal }: Deadline): Promise<Response> {
    const token = await currentToken(this.#token);
    const headers = { ...init.headers, Authorization: `Bearer ${token}`, "User-Agent": "laneway-typescript" };
    // A redirect could turn a POST into a GET, and take the token along.
    const response = await fetch(url, { ...init, headers, signal, redirect: "manual" });
    this.#noteExpiry(response.headers.get(EXPIRES_HEADER));
    return response;
  }

  #noteExpiry(leftS: string | null): void {
    if (this.#hasWarned || leftS === null || !/^\d+$/.test(leftS)) return;
    this.#hasWarned = true;
    this.#logger.warn(`the token for ${this.#base} ${expiryText(1000 * Number(leftS))}`);
  }
}

/** Whether the same request may succeed a little later. */
export function mayPass(error: unknown): boolean {
  return error instanceof ServerUnreachable || (error instanceof ApiError && error.mayPass);
}

/** The JSON of a response or an event. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(200, { code: "server_error", detail: "the server's response is not JSON" });
  }
}

async function problemOf(response: Response, base: string): Promise<ApiError> {
  const text = await response.text();
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  const problem: Partial<Problem> = isProblem ? (parsed(text) as Problem) : {};
  const { status } = response;
  if (status >= 300 && status < 400) {
    const to = response.headers.get("Location");
    return new ApiError(status, { detail: `the server at ${base} redirects to ${to}: use that address` });
  }
  // A router sent it: another server, or ours under a wrong path.
  if (status === 404 && (problem.code === undefined || problem.detail === "Not Found")) {
    return new ApiError(status, { detail: `no Laneway API at ${base}: check the address and its path` });
  }
  return new ApiError(status, problem, retryAfterMs(response.headers.get("Retry-After")));
}

/** The milliseconds of a Retry-After header: seconds or a date. */
function retryAfterMs(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return 1000 * Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

/** The error of `fetch`, whose message says only that it failed. */
function reason(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string; code?: string }; message?: string };
  return cause?.message || cause?.code || message || String(error);
}

function checkedServer(text: string, allowInsecure: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new InvalidInput("server", "must start with http:// or https:// and name a host");
  }
  if (url.username || url.password) {
    throw new InvalidInput("server", "must not contain a password: use a token");
  }
  if (url.search || url.hash) throw new InvalidInput("server", "must not have a query or a fragment");
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowInsecure) {
    throw new InvalidInput(
      "server",
      "must be https: plain http exposes the token on the network (allowInsecure: true permits it)",
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function checkedKey(key: string): string {
  if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(key)) {
    throw new InvalidInput("idempotencyKey", "must be printable ASCII without a space at either end");
  }
  return key;
}

function checkedNumber(field: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new InvalidInput(field, `must be a whole number from ${least} to ${most}`);
  }
  return value;
}
