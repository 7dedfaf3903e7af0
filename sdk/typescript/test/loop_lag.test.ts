import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { status } from "@grpc/grpc-js";

import { Connection } from "../src/connection.js";
import { LoopLag } from "../src/loop_lag.js";
import { Heard, TOKEN, refusal } from "./fake_server.js";
import { aServer, aWorker } from "./worker_harness.js";

// What grpc-js makes of the end of a connection on which a server's pings are not answered.
const GIVEN_UP = refusal(
  status.RESOURCE_EXHAUSTED,
  "Bandwidth exhausted or memory limit exceeded",
);

describe("A process that stood still", () => {
  it("knows it for a second more", (t) => {
    let clock = 0;
    // No two looks at a clock see the same.
    t.mock.method(performance, "now", () => (clock += 0.001));
    t.mock.timers.enable({ apis: ["setInterval", "setImmediate"] });
    const lag = new LoopLag();
    lag.start();
    clock += 17_000;
    t.mock.timers.tick(250);
    t.mock.timers.tick(1);
    assert.equal(Math.round(lag.ms), 17_000);
    clock += 1000;
    assert.equal(Math.round(lag.ms), 1000);
    lag.stop();
  });

  it("is told so when its server has given it up, and connects again", async (t) => {
    const server = await aServer();
    const warnings = new Heard<string>();
    const logger = { info: () => {}, warn: (text: string) => warnings.push(text), error: () => {} };
    t.mock.getter(LoopLag.prototype, "ms", () => 17_000);
    await aWorker(server, { logger })
      .handle("block", () => server.cut(GIVEN_UP))
      .start();
    server.assign("block");
    const warning = await warnings.first((text) => text.startsWith("stream"));
    assert.match(warning, /: this process did not answer for 17 s: .*; Bandwidth exhausted /);
    await server.handshakes.count(2);
    await server.results.first();
  });

  it("hears also what has failed, and only that if no server can have given it up", async () => {
    const server = await aServer();
    server.onBeat = () => {
      throw refusal(status.UNAVAILABLE, "the replica stops");
    };
    const request = { workerId: "", claims: [{ jobId: "", attempt: 1 }] };
    const cases: [number, RegExp][] = [
      [10_000, /^this process did not answer for 10 s: .*; the replica stops$/],
      [9_999, /^the replica stops$/],
    ];
    for (const [ms, message] of cases) {
      const connection = new Connection(server.address, TOKEN, undefined, { ms });
      await assert.rejects(connection.call("heartbeat", request, 20_000), { message });
      connection.close();
    }
  });

  it("hears all the same what its server has to say", async () => {
    const server = await aServer();
    const request = { workerId: "", claims: [{ jobId: "", attempt: 1 }] };
    const connection = new Connection(server.address, TOKEN, undefined, { ms: 17_000 });
    const cases: [status, string][] = [
      [status.PERMISSION_DENIED, "not yours"],
      [status.RESOURCE_EXHAUSTED, "message larger than max (5 vs. 4)"],
    ];
    for (const [code, message] of cases) {
      server.onBeat = () => {
        throw refusal(code, message);
      };
      await assert.rejects(connection.call("heartbeat", request, 1000), { message });
    }
    connection.close();
  });
});
