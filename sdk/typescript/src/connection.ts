/** The way to the servers: one at a time of those named, the next one for a while if it fails. */

import { readFileSync } from "node:fs";
import { getSystemErrorMap } from "node:util";

import {
  type CallOptions,
  ChannelCredentials,
  type ClientReadableStream,
  Metadata,
  type ServiceError,
  credentials,
  status,
} from "@grpc/grpc-js";

import { InvalidInput, ServerError } from "./errors.js";
import { Lag } from "./lag.js";
import { checkOptions, type Names } from "./options.js";
import {
  type AcquireLimitsRequest,
  type AcquireLimitsResponse,
  type Client,
  DispatchService,
  type HeartbeatRequest,
  type HeartbeatResponse,
  type ReleaseLimitsRequest,
  type ReleaseLimitsResponse,
  type ReportProgressRequest,
  type ReportProgressResponse,
  type ReportResultRequest,
  type ReportResultResponse,
  type StreamJobsRequest,
  type StreamJobsResponse,
} from "./protocol.js";

/** How a server proves who it is, and the worker if it is asked to; texts are PEM. */
export interface Tls {
  /** Whom to trust instead of the system's certificate authorities. */
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  /** The name on the server's certificate, if it is not the one in its address. */
  serverName?: string;
}

const KNOWN_TLS: Names<Tls> = { ca: true, cert: true, key: true, serverName: true };

export type Token = string | (() => string | Promise<string>);

interface Calls {
  heartbeat: [HeartbeatRequest, HeartbeatResponse];
  reportProgress: [ReportProgressRequest, ReportProgressResponse];
  reportResult: [ReportResultRequest, ReportResultResponse];
  acquireLimits: [AcquireLimitsRequest, AcquireLimitsResponse];
  releaseLimits: [ReleaseLimitsRequest, ReleaseLimitsResponse];
}

type Unary<Q, A> = (
  request: Q,
  metadata: Metadata,
  options: CallOptions,
  done: (error: ServiceError | null, answer?: A) => void,
) => { cancel(): void };

const CHANNEL = {
  // A peer that is gone without a word is noticed by a ping.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.min_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // A server says how much it takes and sends at once.
  "grpc.max_receive_message_length": -1,
  // Connections of this worker end with it.
  "grpc.use_local_subchannel_pool": 1,
};

// A stream to a server that is gone has ended by then.
const AWAY_MS = 30_000;

// A server waits for the answer to a ping at least so long before it gives up a connection.
const STANDSTILL_MS = 10_000;

// grpc-js says it also if there is none.
const NO_NOTE = /\. Resolution note: $/;

// Never told with the text, which may be a secret all the same.
const NO_TOKEN = "must be what `laneway tokens create` has shown, alone";

const ADDRESS = /^(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/;

export class Connection {
  readonly #addresses: string[];
  readonly #clients: (Client | undefined)[];
  readonly #credentials: ChannelCredentials[];
  readonly #serverName: string | undefined;
  readonly #token: Token;
  readonly #open = new Set<{ cancel(): void }>();
  #at = 0;
  #streamAt = 0;
  #awaySince = 0;
  #hasHadToken = false;

  constructor(
    server: string | string[],
    token: Token,
    tls?: boolean | Tls,
    private readonly lag: Pick<Lag, "ms"> = new Lag(),
  ) {
    const named: unknown[] = Array.isArray(server) ? server : String(server).split(",");
    this.#addresses = named.map((one) => String(one).trim());
    if (this.#addresses.length === 0 || !this.#addresses.every(isAddress)) {
      throw new InvalidInput("server", "must be host:port without http://, or several of them");
    }
    if (tls !== undefined && typeof tls !== "boolean") checkOptions(tls, KNOWN_TLS, "tls");
    this.#clients = this.#addresses.map(() => undefined);
    this.#credentials = this.#addresses.map((address) => credentialsFor(address, tls));
    this.#serverName = typeof tls === "object" ? tls.serverName : undefined;
    this.#token = typeof token === "function" ? token : checked(token);
  }

  /** Opens a stream; what comes of it is told by its events. */
  async open(describe: () => StreamJobsRequest): Promise<ClientReadableStream<StreamJobsResponse>> {
    const metadata = await this.#metadata();
    this.#streamAt = this.#at;
    return this.#client().streamJobs(describe(), metadata);
  }

  /** Makes a call; throws ServerError. The next one goes elsewhere if this server was away. */
  async call<M extends keyof Calls>(
    method: M,
    request: Calls[M][0],
    deadlineMs: number,
  ): Promise<Calls[M][1]> {
    const metadata = await this.#metadata();
    // Results that are told where the stream is make room at once.
    if (performance.now() - this.#awaySince > AWAY_MS) this.#at = this.#streamAt;
    const at = this.#at;
    const client = this.#client();
    const unary = client[method].bind(client) as unknown as Unary<Calls[M][0], Calls[M][1]>;
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + deadlineMs;
      const call = unary(request, metadata, { deadline }, (error, answer) => {
        this.#open.delete(call);
        if (error === null && answer !== undefined) return resolve(answer);
        const said = this.failure(error);
        if (!said.isRefusal) this.#moveOn(at);
        reject(said);
      });
      this.#open.add(call);
    });
  }

  /** The server that the newest stream went to. */
  get streamAddress(): string {
    return this.#addresses[this.#streamAt] as string;
  }

  /** Why a call or a stream has failed, as far as it can be told here. */
  failure(error: unknown): ServerError {
    const said = asServerError(error);
    if (this.lag.ms < STANDSTILL_MS || !said.isLoss) return said;
    return new ServerError(
      "UNAVAILABLE",
      `this process did not answer for ${Math.round(this.lag.ms / 1000)} s: its event loop was ` +
        "probably blocked; move work that takes so long to a worker thread or another process; " +
        said.message,
    );
  }

  /** Turns to another server than the newest stream went to. */
  leave(): void {
    this.#moveOn(this.#streamAt);
  }

  /** Turns to the next address, unless somebody has done so already. */
  #moveOn(from: number): void {
    if (from !== this.#at) return;
    this.#at = (from + 1) % this.#addresses.length;
    this.#awaySince = performance.now();
  }

  close(): void {
    for (const call of this.#open) call.cancel();
    for (const client of this.#clients) client?.close();
  }

  #client(): Client {
    const at = this.#at;
    return (this.#clients[at] ??= new DispatchService(
      this.#addresses[at] as string,
      this.#credentials[at] as ChannelCredentials,
      this.#serverName === undefined
        ? CHANNEL
        : { ...CHANNEL, "grpc.ssl_target_name_override": this.#serverName },
    ));
  }

  async #metadata(): Promise<Metadata> {
    const metadata = new Metadata();
    try {
      const given = this.#token;
      const token = typeof given === "function" ? checked(await given()) : given;
      metadata.set("authorization", `Bearer ${token}`);
    } catch (error) {
      const why = error instanceof InvalidInput ? error : noToken(error);
      throw this.#hasHadToken ? new ServerError("UNAUTHENTICATED", why.message) : why;
    }
    this.#hasHadToken = true;
    return metadata;
  }
}

function checked(token: string, field = "token"): string {
  const text = typeof token === "string" ? token.trim() : "";
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidInput(field, NO_TOKEN);
  return text;
}

function noToken(error: unknown): InvalidInput {
  return new InvalidInput("token", `cannot be had: ${asServerError(error).message}`);
}

/** LANEWAY_TOKEN, or what the file that LANEWAY_TOKEN_FILE names says at each use. */
export function tokenFromEnvironment(env = process.env): Token {
  const { LANEWAY_TOKEN: token, LANEWAY_TOKEN_FILE: file } = env;
  if (token) return token;
  if (file) return () => checked(read(file), `token file ${file}`);
  throw new InvalidInput(
    "token",
    "must be given, or LANEWAY_TOKEN, or LANEWAY_TOKEN_FILE (`laneway tokens create`)",
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { errno = 0, message } = error as NodeJS.ErrnoException;
    const why = getSystemErrorMap().get(errno)?.[1] ?? message;
    const rule = "LANEWAY_TOKEN_FILE must name a file with what `laneway tokens create` has shown";
    throw new InvalidInput("token file", `cannot read ${file}: ${why}; ${rule}`);
  }
}

export function asServerError(error: unknown): ServerError {
  if (typeof error === "object" && error !== null && "code" in error && "details" in error) {
    const { code, details } = error as ServiceError;
    const said = details || String(status[code]);
    return new ServerError(status[code] ?? "UNKNOWN", said.replace(NO_NOTE, ""));
  }
  return new ServerError("UNKNOWN", error instanceof Error ? error.message : String(error));
}

function isAddress(text: string): boolean {
  const port = ADDRESS.exec(text)?.[1];
  return text.startsWith("unix:") || (port !== undefined && +port > 0 && +port < 65536);
}

/** A token is shown in plain text only to this machine. */
function credentialsFor(address: string, tls: boolean | Tls | undefined): ChannelCredentials {
  const isLocal = LOOPBACK.test(address) || address.startsWith("unix:");
  if (tls === undefined ? isLocal : tls === false) {
    if (isLocal) return credentials.createInsecure();
    throw new InvalidInput("tls", `${address} is another machine: it needs TLS`);
  }
  const { ca, cert, key } = typeof tls === "object" ? tls : {};
  try {
    return credentials.createSsl(pem(ca), pem(key), pem(cert));
  } catch (error) {
    throw new InvalidInput("tls", error instanceof Error ? error.message : String(error));
  }
}

function pem(text: string | Buffer | undefined): Buffer | null {
  return text === undefined ? null : Buffer.from(text);
}
