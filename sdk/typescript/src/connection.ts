/** Calls to the servers: one address at a time, the next one for a while if it fails. */

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
import { LoopLag } from "./loop_lag.js";
import { checkOptions, type Names } from "./options.js";
import {
  type AcquireLimitsRequest,
  type AcquireLimitsResponse,
  type BeginWaitRequest,
  type BeginWaitResponse,
  type Client,
  DispatchService,
  type HeartbeatRequest,
  type HeartbeatResponse,
  type ReadResultsRequest,
  type ReadResultsResponse,
  type ReadWaitsRequest,
  type ReadWaitsResponse,
  type ReleaseLimitsRequest,
  type ReleaseLimitsResponse,
  type ReportProgressRequest,
  type ReportProgressResponse,
  type ReportResultRequest,
  type ReportResultResponse,
  type StreamJobsRequest,
  type StreamJobsResponse,
  type SubmitSubJobsRequest,
  type SubmitSubJobsResponse,
} from "./protocol.js";
import { checkedToken, currentToken, type Token } from "./token.js";

/** TLS settings of the server and, if required, of the worker; texts are PEM. */
export interface Tls {
  /** Certificate authorities to trust instead of the system's. */
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  /** The name on the server's certificate, if it is not the one in its address. */
  serverName?: string;
}

const KNOWN_TLS: Names<Tls> = { ca: true, cert: true, key: true, serverName: true };

export interface Calls {
  heartbeat: [HeartbeatRequest, HeartbeatResponse];
  reportProgress: [ReportProgressRequest, ReportProgressResponse];
  reportResult: [ReportResultRequest, ReportResultResponse];
  acquireLimits: [AcquireLimitsRequest, AcquireLimitsResponse];
  releaseLimits: [ReleaseLimitsRequest, ReleaseLimitsResponse];
  readWaits: [ReadWaitsRequest, ReadWaitsResponse];
  beginWait: [BeginWaitRequest, BeginWaitResponse];
  submitSubJobs: [SubmitSubJobsRequest, SubmitSubJobsResponse];
  readResults: [ReadResultsRequest, ReadResultsResponse];
}

type Unary<Q, A> = (
  request: Q,
  metadata: Metadata,
  options: CallOptions,
  done: (error: ServiceError | null, answer?: A) => void,
) => { cancel(): void };

const CHANNEL = {
  // Pings detect a lost peer.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.min_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // The server decides the size of messages.
  "grpc.max_receive_message_length": -1,
  // Connections of this worker end with it.
  "grpc.use_local_subchannel_pool": 1,
};

// After this time a stream to a lost server has ended, and calls return to the stream's server.
const AWAY_MS = 30_000;

// The shortest time after which a server closes a connection without an answer to its ping.
const BLOCKED_MS = 10_000;

// grpc-js appends this even if the note is empty.
const NO_NOTE = /\. Resolution note: $/;

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
    private readonly lag: Pick<LoopLag, "ms"> = new LoopLag(),
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
    this.#token = typeof token === "function" ? token : checkedToken(token);
  }

  /** Opens a stream; its events report messages and errors. */
  async open(describe: () => StreamJobsRequest): Promise<ClientReadableStream<StreamJobsResponse>> {
    const metadata = await this.#metadata();
    this.#streamAt = this.#at;
    return this.#client().streamJobs(describe(), metadata);
  }

  /** Makes a call; throws ServerError. After a lost call the next one goes to another server. */
  async call<M extends keyof Calls>(
    method: M,
    request: Calls[M][0],
    deadlineMs: number,
  ): Promise<Calls[M][1]> {
    const metadata = await this.#metadata();
    // Results that are sent to the stream's server make room at once.
    if (performance.now() - this.#awaySince > AWAY_MS) this.#at = this.#streamAt;
    const at = this.#at;
    const client = this.#client();
    const unary = client[method].bind(client) as unknown as Unary<Calls[M][0], Calls[M][1]>;
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + deadlineMs;
      const call = unary(request, metadata, { deadline }, (error, answer) => {
        this.#open.delete(call);
        if (error === null && answer !== undefined) return resolve(answer);
        const failure = this.failure(error);
        if (!failure.isRefusal) this.#moveOn(at);
        reject(failure);
      });
      this.#open.add(call);
    });
  }

  /** The address of the newest stream. */
  get streamAddress(): string {
    return this.#addresses[this.#streamAt] as string;
  }

  /** The cause of a failed call or stream; names a blocked event loop if there was one. */
  failure(error: unknown): ServerError {
    const failure = asServerError(error);
    if (this.lag.ms < BLOCKED_MS || !failure.isLoss) return failure;
    return new ServerError(
      "UNAVAILABLE",
      `this process did not answer for ${Math.round(this.lag.ms / 1000)} s: its event loop was ` +
        "probably blocked; move long computations to a worker thread or another process; " +
        failure.message,
    );
  }

  /** Switches to another server than that of the newest stream. */
  leave(): void {
    this.#moveOn(this.#streamAt);
  }

  /** Switches to the next address, unless another call has done so. */
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
      metadata.set("authorization", `Bearer ${await currentToken(this.#token)}`);
    } catch (error) {
      const failure = error as InvalidInput;
      throw this.#hasHadToken ? new ServerError("UNAUTHENTICATED", failure.message) : failure;
    }
    this.#hasHadToken = true;
    return metadata;
  }
}

export function asServerError(error: unknown): ServerError {
  if (typeof error === "object" && error !== null && "code" in error && "details" in error) {
    const { code, details } = error as ServiceError;
    const text = details || String(status[code]);
    return new ServerError(status[code] ?? "UNKNOWN", text.replace(NO_NOTE, ""));
  }
  return new ServerError("UNKNOWN", error instanceof Error ? error.message : String(error));
}

function isAddress(text: string): boolean {
  const port = ADDRESS.exec(text)?.[1];
  return text.startsWith("unix:") || (port !== undefined && +port > 0 && +port < 65536);
}

/** Credentials of an address; a token is sent in plain text only to this machine. */
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
