import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { FlowFailed, JobFailed, type Job, type JobEvent } from "../src/client/index.js";
import { SseParser } from "../src/client/sse.js";
import { ID, cut, event, fakeApi, problem, stream } from "./fake_api.js";

async function all(events: AsyncIterable<JobEvent>): Promise<string[]> {
  const found: string[] = [];
  for await (const one of events) found.push(`${one.id} ${one.name} ${one.job.status}`);
  return found;
}

describe("watch", () => {
  it("yields each event once, across lost connections and refusals that pass", async (t) => {
    const third = event("3", "job.completed", "completed");
    const api = await fakeApi(
      t,
      stream([event("1", "job.state", "approved"), event("2", "job.claimed", "running"), third.slice(0, -5)]),
      cut,
      problem(503, "database_unavailable"),
      stream([third], { isOpen: true }),
    );
    assert.deepEqual(await all(api.client().watch(ID)), [
      "1 job.state approved",
      "2 job.claimed running",
      "3 job.completed completed",
    ]);
    assert.deepEqual(
      api.received.map((one) => [one.url, one.headers["last-event-id"]]),
      [undefined, "2", "2", "2"].map((id) => [`/jobs/${ID}/stream`, id]),
    );
  });

  it("continues after a given event, and ends if that was the last", async (t) => {
    const api = await fakeApi(t, (response) => response.writeHead(204).end());
    assert.deepEqual(await all(api.client().watch(ID, { lastEventId: "7" })), []);
    assert.equal(api.received[0]?.headers["last-event-id"], "7");
  });

  it("ends with the refusal of the server", async (t) => {
    const api = await fakeApi(t, problem(404, "not_found"));
    await assert.rejects(all(api.client().watch(ID)), { name: "ApiError", code: "not_found" });
    assert.equal(api.received.length, 1);
  });

  it("refuses an event that is not a job", async (t) => {
    const api = await fakeApi(t, stream(["id: 1\nevent: job.state\ndata: 17\n\n"]));
    await assert.rejects(all(api.client().watch(ID)), { code: "server_error" });
  });
});

describe("wait", () => {
  it("returns the result", async (t) => {
    const api = await fakeApi(
      t,
      stream([event("1", "job.state", "running")]),
      stream([event("2", "job.completed", "completed", { result: { n: 1 } })]),
    );
    assert.deepEqual(await api.client().wait<{ n: number }>(ID), { n: 1 });
  });

  it("throws what happened to a job that failed or was cancelled", async (t) => {
    const error = { type: "ValueError", message: "no", traceback: null };
    const cases: [string, Partial<Job>, string][] = [
      ["failed", { error }, `job ${ID} failed: ValueError: no`],
      ["failed", { error: null }, `job ${ID} failed`],
      [
        "cancelled",
        { cancelled_by: "ann", cancel_reason: "late" },
        `job ${ID} was cancelled by ann: late`,
      ],
      ["cancelled", { cancelled_by: null, cancel_reason: null }, `job ${ID} was cancelled`],
    ];
    for (const [status, more, message] of cases) {
      const api = await fakeApi(t, stream([event("1", `job.${status}`, status, more)]));
      const thrown: unknown = await api.client().wait(ID).catch((one: unknown) => one);
      assert.ok(thrown instanceof JobFailed);
      assert.equal(thrown.message, message);
      assert.equal(thrown.job.status, status);
    }
  });

  it("throws a TimeoutError", async (t) => {
    const api = await fakeApi(t, stream([event("1", "job.state", "running")], { isOpen: true }));
    const expected = { name: "TimeoutError", message: `job ${ID} did not end within 0 ms` };
    await assert.rejects(api.client().wait(ID, { timeoutMs: 0 }), expected);
  });
});

describe("a flow", () => {
  const counts = { jobs: 3, completed: 2, failed: 1, cancelled: 0 };
  const flow = (id: string, name: string, status: string) => event(id, name, status, { name: "nightly", counts });

  it("is followed across lost connections until all its jobs have ended", async (t) => {
    const api = await fakeApi(
      t,
      stream([flow("1", "flow.state", "running"), event("2", "job.failed", "failed"), 'id: 3\nevent: jobs.changed\ndata: {"change": null}\n\n']),
      cut,
      stream([flow("4", "flow.failed", "failed"), event("5", "job.state", "failed")]),
    );
    const found: string[] = [];
    for await (const { id, name, flow, job } of api.client().watchFlow(ID)) {
      found.push(`${id} ${name} ${flow?.status} ${job?.status}`);
    }
    assert.deepEqual(found, [
      "1 flow.state running undefined",
      "2 job.failed undefined failed",
      "3 jobs.changed undefined undefined",
      "4 flow.failed failed undefined",
    ]);
    assert.deepEqual([...new Set(api.received.map((one) => one.url))], [`/flows/${ID}/stream`]);
  });

  it("is waited for", async (t) => {
    const ends = (status: string) =>
      fakeApi(t, stream([flow("1", "flow.state", "running")]), stream([flow("2", `flow.${status}`, status)]));
    assert.equal((await (await ends("completed")).client().waitFlow(ID)).counts.jobs, 3);
    for (const [status, how] of [["failed", "failed"], ["cancelled", "was cancelled"]] as const) {
      const thrown: unknown = await (await ends(status)).client().waitFlow(ID).catch((one: unknown) => one);
      assert.ok(thrown instanceof FlowFailed);
      assert.equal(thrown.message, `flow nightly ${ID} ${how}: 2 of 3 jobs completed, 1 failed`);
      assert.equal(thrown.flow.status, status);
    }
    const api = await fakeApi(t, stream([flow("1", "flow.state", "running")], { isOpen: true }));
    const expected = { name: "TimeoutError", message: `flow ${ID} did not end within 0 ms` };
    await assert.rejects(api.client().waitFlow(ID, { timeoutMs: 0 }), expected);
  });
});

describe("the parser of events", () => {
  const text =
    "\ufeff: comment\r\nretry: 50\r\n\r\nid: 1\revent: a\rdata: é✓\r\rid: 2\ndata:x\ndata\ndata:  y\n\n" +
    "event: no data\n\nid: a\0b\nid\ndata: z\n\nid: 9\ndata: cut";
  const expected = [
    { id: "1", event: "a", data: "é✓" },
    { id: "2", event: "message", data: "x\n\n y" },
    { id: "", event: "message", data: "z" },
  ];

  it("reads the same however the bytes are divided", () => {
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size++) {
      const parser = new SseParser("0");
      const found = [];
      for (let at = 0; at < bytes.length; at += size) found.push(...parser.feed(bytes.subarray(at, at + size)));
      assert.deepEqual(found, expected);
      assert.deepEqual([parser.lastId, parser.retryMs], ["", 50]);
    }
  });
});
