import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { ApiError, Client, InvalidInput, ServerUnreachable } from "../src/client/index.js";
import { ID, TOKEN, cut, fakeApi, json, problem } from "./fake_api.js";
import { promise } from "./worker_harness.js";

const job = { id: ID, job_type: "greet", status: "approved" };

describe("a request", () => {
  it("carries the token and, if it changes something, a key", async (t) => {
    const api = await fakeApi(t, json(job, 202));
    const client = api.client();
    assert.deepEqual(await client.submit({ job_type: "greet", payload: { to: "é" }, priority: 10 }), job);
    await client.submit({ job_type: "greet" });
    await client.get(ID);
    const [first, second, third] = api.received;
    assert.deepEqual(first?.body, { job_type: "greet", payload: { to: "é" }, priority: 10 });
    assert.equal(`${first?.method} ${first?.url}`, "POST /jobs");
    assert.equal(first?.headers.authorization, `Bearer ${TOKEN}`);
    assert.ok(first?.headers["idempotency-key"]);
    assert.notEqual(first?.headers["idempotency-key"], second?.headers["idempotency-key"]);
    assert.equal(`${third?.method} ${third?.url}`, `GET /jobs/${ID}`);
    assert.equal(third?.headers["idempotency-key"], undefined);
  });

  it("asks a function for the token each time", async (t) => {
    const api = await fakeApi(t, json(job));
    let calls = 0;
    const client = api.client({ token: async () => `token${++calls}` });
    await client.get(ID);
    await client.get(ID);
    assert.deepEqual(
      api.received.map((one) => one.headers.authorization),
      ["Bearer token1", "Bearer token2"],
    );
  });

  it("is about a flow or an event as it is about a job", async (t) => {
    const api = await fakeApi(t, json({ id: ID }));
    const client = api.client();
    const flow = { name: "nightly", jobs: [{ name: "one", job_type: "page", payload: { n: 1 } }] };
    await client.submitFlow(flow);
    await client.getFlow(ID, { limit: 5 });
    await client.cancelFlow(ID, { reason: "late" });
    await client.retryFlow(ID);
    await client.sendEvent({ name: "reviewed", key: "k", payload: { by: "ann" } });
    assert.deepEqual(
      api.received.map((one) => `${one.method} ${one.url}`),
      ["POST /flows", `GET /flows/${ID}?limit=5`, `POST /flows/${ID}/cancel`, `POST /flows/${ID}/retry`, "POST /events"],
    );
    assert.deepEqual(api.received[0]?.body, flow);
    assert.deepEqual(api.received[4]?.body, { name: "reviewed", key: "k", payload: { by: "ann" } });
    const keyed = api.received.map((one) => one.headers["idempotency-key"] !== undefined);
    assert.deepEqual(keyed, [true, false, true, true, true]);
    await assert.rejects(client.sendEvent({ name: "e", payload: Number.NaN }), InvalidInput);
  });

  it("lists flows page by page", async (t) => {
    const api = await fakeApi(
      t,
      json({ items: [{ id: ID, name: "one" }], next_cursor: "c" }),
      json({ items: [{ id: ID, name: "two" }], next_cursor: null }),
    );
    const names: string[] = [];
    for await (const flow of api.client().listFlows({ status: "running", tag: "a&b" })) names.push(flow.name);
    assert.deepEqual(names, ["one", "two"]);
    await api.client().listFlows().page({ limit: 5 });
    assert.deepEqual(
      api.received.map((one) => one.url),
      ["/flows?status=running&tag=a%26b&limit=200", "/flows?status=running&tag=a%26b&limit=200&cursor=c", "/flows?limit=5"],
    );
  });

  it("keeps the path of the API", async (t) => {
    const api = await fakeApi(t, json(job));
    await new Client({ server: `${api.url}/jobs-api/`, token: TOKEN }).explain(ID);
    assert.equal(api.received[0]?.url, `/jobs-api/jobs/${ID}/explain`);
  });
});

describe("a request that fails", () => {
  it("is sent again with the same key, whatever was lost", async (t) => {
    const unavailable = problem(503, "database_unavailable");
    const busy = problem(409, "idempotency_under_way");
    const api = await fakeApi(t, cut, unavailable, busy, json(job, 202));
    assert.deepEqual(await api.client().submit({ job_type: "greet" }), job);
    const keys = api.received.map((one) => one.headers["idempotency-key"]);
    assert.equal(keys.length, 4);
    assert.equal(new Set(keys).size, 1);
  });

  it("is given up after its retries", async (t) => {
    const api = await fakeApi(t, problem(503, "database_unavailable"));
    const asked = api.client({ retries: 1 }).cancel(ID, { reason: "late" }, { idempotencyKey: "once" });
    await assert.rejects(asked, { name: "ApiError", code: "database_unavailable", status: 503 });
    assert.deepEqual(
      api.received.map((one) => one.headers["idempotency-key"]),
      ["once", "once"],
    );
  });

  it("waits as long as the server asks, but not for minutes", async (t) => {
    const soon = await fakeApi(t, problem(429, "rate_limited", {}, { "Retry-After": "1" }), json(job));
    const began = performance.now();
    await soon.client().get(ID);
    assert.ok(performance.now() - began >= 990);

    const late = await fakeApi(t, problem(429, "rate_limited", {}, { "Retry-After": "3600" }));
    await assert.rejects(late.client().get(ID), { code: "rate_limited", retryAfterMs: 3_600_000 });
    assert.equal(late.received.length, 1);
  });

  it("is not sent again if the server has refused it", async (t) => {
    for (const [status, code] of [
      [429, "quota_exceeded"],
      [409, "refused"],
      [404, "not_found"],
      [500, "internal"],
    ] as const) {
      const api = await fakeApi(t, problem(status, code));
      await assert.rejects(api.client().submit({ job_type: "greet" }), { status, code });
      assert.equal(api.received.length, 1, code);
    }
  });

  it("is refused with the code, the fields and the id of the request", async (t) => {
    const errors = [{ field: "body.priority", rule: "must be at most 32767" }];
    const api = await fakeApi(t, problem(422, "invalid_input", { errors, bound: "x" }));
    const error: unknown = await api.client().submit({ job_type: "greet" }).catch((one: unknown) => one);
    assert.ok(error instanceof ApiError);
    assert.equal(error.message, "body.priority: must be at most 32767");
    assert.deepEqual([error.code, error.status, error.requestId], ["invalid_input", 422, "r1"]);
    assert.deepEqual([error.fields, error.problem.bound], [errors, "x"]);
  });

  it("names an address without an API, and one that redirects", async (t) => {
    const page = await fakeApi(t, (response) => response.writeHead(404).end("<h1>no page</h1>"));
    await assert.rejects(page.client().get(ID), { message: /^no Laneway API at http.*: check the address/ });
    const moved = await fakeApi(t, (response) => response.writeHead(302, { Location: page.url }).end());
    await assert.rejects(moved.client().get(ID), { status: 302, message: /redirects to http.*: use that/ });
    assert.equal(page.received.length, 1);
    const other = await fakeApi(t, (response) => response.end("<h1>hello</h1>"));
    await assert.rejects(other.client().get(ID), { code: "server_error", message: /is not JSON/ });
  });

  it("names an unreachable server, without the token", async (t) => {
    const api = await fakeApi(t, cut);
    const error: unknown = await api.client({ retries: 0 }).get(ID).catch((one: unknown) => one);
    assert.ok(error instanceof ServerUnreachable);
    assert.match(error.message, /^the server at http:\/\/127.* cannot be reached: /);
    assert.equal(error.code, "server_unreachable");
    assert.doesNotMatch(String(error.stack) + String(error.cause), /lw_token/);
  });

  it("ends after its timeout", async (t) => {
    const api = await fakeApi(t, () => {});
    const asked = api.client({ retries: 0, timeoutMs: 20 }).get(ID);
    await assert.rejects(asked, { name: "ServerUnreachable", message: /no response within 20 ms/ });
  });
});

describe("a signal", () => {
  it("ends a request, a pause and a stream with its reason", async (t) => {
    const why = new Error("no longer needed");
    const silent = await fakeApi(t, (response) => void response.writeHead(200).write(" "));
    const busy = await fakeApi(t, problem(503, "database_unavailable", {}, { "Retry-After": "50" }));
    const client = silent.client();
    const asks: ((signal: AbortSignal) => Promise<unknown>)[] = [
      (signal) => client.get(ID, { signal }),
      (signal) => busy.client().get(ID, { signal }),
      (signal) => client.watch(ID, { signal }).next(),
      (signal) => client.wait(ID, { signal }),
      (signal) => busy.client().watch(ID, { signal }).next(),
    ];
    for (const ask of asks) {
      const controller = new AbortController();
      const before = silent.received.length + busy.received.length;
      const asked = ask(controller.signal);
      asked.catch(() => {});
      while (silent.received.length + busy.received.length === before) await new Promise(setImmediate);
      controller.abort(why);
      await assert.rejects(asked, why);
      await assert.rejects(ask(AbortSignal.abort(why)), why);
    }
  });
});

describe("a list", () => {
  it("fetches its pages as they are read", async (t) => {
    const api = await fakeApi(
      t,
      json({ items: [{ id: "a" }, { id: "b" }], next_cursor: "x y", looked_back_to: null }),
      json({ items: [{ id: "c" }], next_cursor: null, looked_back_to: null }),
    );
    const ids: string[] = [];
    for await (const one of api.client().list({ status: "failed", tag: "a&b", lane: null })) ids.push(one.id);
    assert.deepEqual(ids, ["a", "b", "c"]);
    assert.deepEqual(
      api.received.map((one) => one.url),
      ["/jobs?status=failed&tag=a%26b&limit=200", "/jobs?status=failed&tag=a%26b&limit=200&cursor=x+y"],
    );
  });

  it("returns one page", async (t) => {
    const api = await fakeApi(t, json({ items: [], next_cursor: "n", looked_back_to: null }));
    const page = await api.client().list({ job_type: "greet" }).page({ limit: 7, cursor: "m" });
    assert.equal(page.next_cursor, "n");
    assert.equal(api.received[0]?.url, "/jobs?job_type=greet&limit=7&cursor=m");
  });
});

describe("wrong arguments", () => {
  it("are refused by name before anything is sent", async (t) => {
    const api = await fakeApi(t, json(job));
    const client = api.client();
    const options = { server: "https://host", token: TOKEN };
    const cases: [() => unknown, RegExp][] = [
      [() => new Client({ ...options, server: "host:8420" }), /^server: must start with http/],
      [() => new Client({ ...options, server: "https://a:b@host" }), /^server: .*password/],
      [() => new Client({ ...options, server: "https://host?x=1" }), /^server: .*query/],
      [() => new Client({ ...options, server: "http://host" }), /^server: must be https/],
      [() => new Client({ ...options, token: "two words" }), /^token: must be exactly/],
      [() => new Client({ ...options, retries: -1 }), /^retries: must be a whole number/],
      [() => new Client({ ...options, timeoutMs: 0 }), /^timeoutMs: must be a whole number/],
      [() => new Client({ ...options, tries: 1 } as object), /^options of Client: "tries" is not/],
      [() => client.get("17"), /^id: must be a UUID/],
      [() => client.get("../me"), /^id: must be a UUID/],
      [() => client.get(ID, { signa: 1 } as object), /^options of get: "signa" is not/],
      [() => client.submit({ job_type: "a" }, { idempotencyKey: " a" }), /^idempotencyKey: must be/],
      [() => client.submit({ job_type: "a", payload: { n: [NaN] } }), /^payload\.n\[0\]: is NaN/],
      [() => client.submitMany([{ job_type: "a", payload: 1n }]), /^jobs\[0\]\.payload: is a bigint/],
    ];
    for (const [call, message] of cases) {
      await assert.rejects(async () => call(), (error) => error instanceof InvalidInput && message.test(error.message));
    }
    assert.equal(api.received.length, 0);
    new Client({ ...options, server: "http://host", allowInsecure: true });
  });

  it("include a token that cannot be read", async (t) => {
    const api = await fakeApi(t, json(job));
    const client = api.client({
      token: () => {
        throw new Error("the vault is closed");
      },
    });
    await assert.rejects(client.get(ID), { name: "InvalidInput", message: /^token: .*the vault is closed/ });
    await assert.rejects(client.watch(ID).next(), { name: "InvalidInput" });
  });
});

describe("a token that expires soon", () => {
  it("is logged once", async (t) => {
    const api = await fakeApi(t, json(job, 200, { "Laneway-Token-Expires-In": "172800" }));
    const lines: string[] = [];
    const logger = { info: () => {}, error: () => {}, warn: (line: string) => void lines.push(line) };
    const client = api.client({ logger });
    await client.get(ID);
    await client.get(ID);
    assert.deepEqual(lines, [`the token for ${api.url} expires in 2 days`]);
  });
});

describe("a stream that is left", () => {
  it("is closed at the server", async (t) => {
    const closed = promise();
    const api = await fakeApi(t, (response) => {
      response.on("close", () => closed.keep());
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write('id: 1\nevent: job.state\ndata: {"status": "running"}\n\n');
    });
    for await (const one of api.client().watch(ID)) {
      assert.equal(one.name, "job.state");
      break;
    }
    await closed.kept;
  });
});

describe("the client's modules", () => {
  it("load nothing of gRPC", () => {
    const source = new URL("../src/client/index.js", import.meta.url);
    const loaded = new Set<string>();
    const load = (file: URL): void => {
      if (loaded.has(file.href)) return;
      loaded.add(file.href);
      for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/^(?:import|export) [^;]*?from "([^"]+)"/gm)) {
        if (name.startsWith(".")) load(new URL(name, file));
        else assert.match(name, /^node:/, `${file.pathname} imports ${name}`);
      }
    };
    load(source);
    assert.ok([...loaded].some((name) => name.endsWith("/token.js")));
  });
});
