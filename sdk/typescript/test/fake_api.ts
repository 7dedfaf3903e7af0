/** An HTTP server with scripted answers, and a client of it; both end with the test. */

import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

import { Client, type ClientOptions } from "../src/client/index.js";

export const TOKEN = "lw_token";
export const ID = "0198a7f0-0000-7000-8000-000000000000";

export interface Received {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: unknown;
}

export type Answer = (response: ServerResponse, received: Received) => void;

export interface FakeApi {
  url: string;
  /** The requests so far. */
  received: Received[];
  client: (options?: ClientOptions) => Client;
}

/** Answers each request with the next of these, and further ones with the last. */
export async function fakeApi(t: TestContext, ...answers: Answer[]): Promise<FakeApi> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const { method = "", url = "", headers } = request;
    const one = { method, url, headers, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
    received.push(one);
    (answers[received.length - 1] ?? answers.at(-1))?.(response, one);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, received, client: (options = {}) => new Client({ server: url, token: TOKEN, ...options }) };
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) => {
    const type = status < 400 ? "application/json" : "application/problem+json";
    response.writeHead(status, { "Content-Type": type, ...headers }).end(JSON.stringify(value));
  };
}

export function problem(status: number, code: string, more: object = {}, headers = {}): Answer {
  return json({ status, code, detail: `it is ${code}`, request_id: "r1", ...more }, status, headers);
}

/** Closes the connection without a response. */
export const cut: Answer = (response) => response.destroy();

/** Sends these parts of a stream, then ends it, or keeps it open. */
export function stream(parts: (string | Buffer)[], { isOpen = false } = {}): Answer {
  return (response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("retry: 1\n\n");
    for (const part of parts) response.write(part);
    if (!isOpen) response.end();
  };
}

export function event(id: string, name: string, status: string, more: object = {}): string {
  return `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify({ id: ID, status, ...more })}\n\n`;
}
