/**
 * Calls the client for tests/sdk: one JSON line per call on stdin, one per result on stdout.
 *
 *     {"call": "submit", "args": [{"job_type": "greet"}]}   →   {"value": {…}} or {"error": {…}}
 *     {"call": "list", …} returns all jobs; "page" one page; "watch" opens a stream, "next" reads it;
 *     "listFlows" returns all flows, "watchFlow" all events of one
 */

import { createInterface } from "node:readline";

import {
  ApiError,
  Client,
  type FlowFilter,
  type JobEvent,
  type JobFilter,
  type PagePosition,
} from "../src/client/index.js";

const client = new Client();
let events: AsyncGenerator<JobEvent, void, undefined> | undefined;

type Call = (...args: never[]) => unknown;

const calls: Record<string, Call> = {
  list: async (filter: JobFilter) => {
    const found = [];
    for await (const job of client.list(filter)) found.push(job);
    return found;
  },
  page: (filter: JobFilter, position: PagePosition) => client.list(filter).page(position),
  listFlows: async (filter: FlowFilter) => {
    const found = [];
    for await (const flow of client.listFlows(filter)) found.push(flow);
    return found;
  },
  watchFlow: async (id: string) => {
    const found = [];
    for await (const event of client.watchFlow(id)) found.push(event);
    return found;
  },
  watch: (id: string, options: object) => {
    events = client.watch(id, options);
    return null;
  },
  next: async () => (await events?.next())?.value ?? null,
};

async function answer(name: string, args: unknown[]): Promise<object> {
  try {
    const method = calls[name] ?? (client[name as keyof Client] as Call).bind(client);
    return { value: (await method(...(args as never[]))) ?? null };
  } catch (error) {
    const { name, message } = error as Error;
    const details = error instanceof ApiError ? { status: error.status, code: error.code, fields: error.fields } : {};
    return { error: { name, message, ...details } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { call, args = [] } = JSON.parse(line) as { call: string; args?: unknown[] };
  process.stdout.write(`${JSON.stringify(await answer(call, args))}\n`);
}
