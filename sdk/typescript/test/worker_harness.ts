/** Servers and workers for a test, ended after it, and promises that it keeps itself. */

import { after } from "node:test";

import { type Logger, Worker, type WorkerOptions } from "../src/index.js";
import { FakeServer, TOKEN } from "./fake_server.js";

const quiet: Logger = { info: () => {}, warn: () => {}, error: () => {} };
const cleanups: (() => unknown)[] = [];

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

export async function aServer(port = 0): Promise<FakeServer> {
  const server = await FakeServer.start(port);
  cleanups.push(() => server.stop());
  return server;
}

export function aWorker(
  server: FakeServer | string[],
  options: Partial<WorkerOptions> = {},
): Worker {
  const at = server instanceof FakeServer ? server.address : server;
  const worker = new Worker({ server: at, token: TOKEN, logger: quiet, ...options });
  cleanups.push(() => worker.stop({ graceMs: 0 }));
  return worker;
}

/** A promise, and how to keep it. */
export function promise<T = void>(): { kept: Promise<T>; keep: (value: T) => void } {
  let keep: (value: T) => void = () => {};
  const kept = new Promise<T>((resolve) => (keep = resolve));
  return { kept, keep };
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}
