import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";

import { status } from "@grpc/grpc-js";

import { tokenFromEnvironment } from "../src/token.js";
import { Heard, TOKEN, refusal } from "./fake_server.js";
import { aServer, aWorker } from "./worker_harness.js";

const directory = mkdtempSync(join(tmpdir(), "laneway-"));
const file = join(directory, "robot.token");
const sdk = new URL("../src/index.js", import.meta.url).href;

after(() => rmSync(directory, { recursive: true }));

interface Ended {
  code: number | null;
  said: string;
}

/** How a program with this as its last words ends. */
function program(text: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const whole = `
    import { Worker } from ${JSON.stringify(sdk)};
    const options = { server: "localhost:1", token: "t" };
    const work = () => {};
    ${text}`;
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ["--input-type=module", "--eval", whole],
      { env, timeout: 25_000 },
      (_, __, said) => resolve({ code: child.exitCode, said }),
    );
  });
}

describe("A mistake at the start", () => {
  it("ends a program that does not catch it with one line", async () => {
    const server = await aServer();
    const at = JSON.stringify(server.address);
    const cases: [string, RegExp, number][] = [
      ["await new Worker({ ...options, server: 'http://a' }).run()", /server: must be host:port/, 2],
      ["new Worker(options).run()", /handle: must name at least one job type/, 2],
      ["new Worker(options).handle('a', work).handle('a', work)", /handler of a: is already/, 2],
      [`await new Worker({ ...options, server: ${at} }).handle('a', work).run()`, /nobody is known/, 4],
    ];
    await Promise.all(
      cases.map(async ([text, line, code]) => {
        const ended = await program(text);
        assert.match(ended.said, new RegExp(`^laneway: ${line.source}.*\n$`), text);
        assert.equal(ended.code, code, text);
      }),
    );
  });

  it("ends with the code that says whose it is", async () => {
    const cases: [status, number][] = [
      [status.INVALID_ARGUMENT, 2],
      [status.FAILED_PRECONDITION, 4],
      [status.PERMISSION_DENIED, 4],
    ];
    for (const [answer, code] of cases) {
      const server = await aServer();
      server.onHandshake = () => {
        throw refusal(answer, "no");
      };
      const ended = await program(`
        const there = { server: "${server.address}", token: "${TOKEN}" };
        await new Worker(there).handle("work", work).run();`);
      assert.deepEqual(ended, { code, said: "laneway: no\n" }, status[answer]);
    }
  });

  it("is told of each worker, also when another one has started", async () => {
    const server = await aServer();
    const ended = await program(`
      const there = { server: "${server.address}", token: "${TOKEN}" };
      const started = new Worker(there).handle("work", work).start();
      const token = async () => (await started, "wrong");
      await Promise.all([started, new Worker({ ...there, token }).handle("work", work).start()]);`);
    assert.match(ended.said, /laneway: nobody is known by this token\n$/);
    assert.equal(ended.code, 4);
  });

  it("is caught like any error", async () => {
    const { code, said } = await program(`
      process.on("uncaughtException", (error) => console.error(error.name, error.field));
      await new Worker(options).run().catch((error) => console.error(error.name, error.field));
      setTimeout(() => new Worker({ ...options, graceMs: -1 }));`);
    assert.deepEqual([code, said], [0, "InvalidInput handle\nInvalidInput graceMs\n"]);
  });

  it("is shown with its stack to whoever asks for it", async () => {
    const { code, said } = await program("await new Worker(options).run()", { LANEWAY_DEBUG: "1" });
    assert.match(said, /InvalidInput: handle: [^]* at Worker\.start /);
    assert.equal(code, 1);
  });

  it("is told from one that comes later, whose stack is needed", async () => {
    const server = await aServer();
    const { said } = await program(`
      const worker = new Worker({ ...options, server: "${server.address}", token: "${TOKEN}" });
      await worker.handle("work", work).start();
      worker.handle("more", work);`);
    assert.match(said, /InvalidInput: handle: must be called before start\n +at /);
  });

  it("is told from one of the program's own, whatever workers there are", async () => {
    const { code, said } = await program(`
      import { InvalidInput } from ${JSON.stringify(sdk)};
      new Worker(options).handle("work", work);
      await new Worker(options).run().catch(() => {});
      throw new InvalidInput("mine", "must be seen");`);
    assert.match(said, /InvalidInput: mine: must be seen\n +at /);
    assert.equal(code, 1);
  });

  it("is told from what breaks the worker later, which ends the program", async () => {
    const server = await aServer();
    const ended = program(`
      const warn = () => { throw new Error("the logger broke"); };
      const logger = { info: work, warn, error: work };
      const there = { server: "${server.address}", token: "${TOKEN}", logger };
      await new Worker(there).handle("work", work).run();`);
    await server.handshakes.first();
    server.assign("work");
    await server.results.first();
    server.cut();
    const { code, said } = await ended;
    assert.match(said, /Error: the logger broke\n +at /);
    assert.equal(code, 1);
  });
});

describe("A token file", () => {
  const token = tokenFromEnvironment({ LANEWAY_TOKEN_FILE: file });

  it("that is missing at the start ends the worker", async () => {
    const { code, said } = await program(
      "await new Worker({ server: options.server }).handle('work', work).run()",
      { LANEWAY_TOKEN_FILE: file },
    );
    const why = "no such file or directory";
    assert.ok(said.startsWith(`laneway: token file: cannot read ${file}: ${why}; `), said);
    assert.match(said, /^[^\n]*`laneway tokens create`[^\n]*\n$/);
    assert.equal(code, 2);
  });

  it("that holds no token at the start is named too, and not told", async () => {
    writeFileSync(file, "a secret\n");
    const worker = aWorker(["localhost:1"], { token }).handle("work", () => {});
    const rule = "must be exactly the output of `laneway tokens create`";
    const message = `token file ${file}: ${rule}`;
    await assert.rejects(worker.start(), { name: "InvalidInput", message });
  });

  it("that vanishes later is complained about, and read again once it is there", async () => {
    const server = await aServer();
    const warnings = new Heard<string>();
    const logger = { info: () => {}, warn: (text: string) => warnings.push(text), error: () => {} };
    writeFileSync(file, `${TOKEN}\n`);
    await aWorker(server, { token, logger })
      .handle("work", () => {})
      .start();
    rmSync(file);
    server.cut();
    await warnings.first((text) => text.includes(`token file: cannot read ${file}`));
    writeFileSync(file, TOKEN);
    await server.handshakes.count(2);
  });
});
