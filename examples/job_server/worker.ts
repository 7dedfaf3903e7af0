/** The handlers of the TypeScript workers: `node worker.ts HOST:PORT[,HOST:PORT]`; see fleet.py. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "laneway-worker";

const worker = new Worker({ server: (process.argv[2] ?? "127.0.0.1:8421").split(",") });

worker.handle("checksum", { lane: "fleet" }, async (_, { text }: { text: string }) => ({
  sha256: createHash("sha256").update(text).digest("hex"),
  by: "typescript",
}));

worker.handle("transcode", { lane: "fleet", maxRetries: 5 }, async (ctx, { parts }: { parts: string[] }) => {
  const { done } = (ctx.checkpoint ?? { done: [] }) as { done: string[] };
  for await (const part of ctx.track(parts)) {
    const gate = process.env["FLEET_GATE"];
    while (part.includes("hold") && gate && !existsSync(gate)) await sleep(50, null, { signal: ctx.signal });
    done.push(`${part} by typescript`);
    await ctx.save({ done });
  }
  return { done };
});

console.log("worker in TypeScript starts");
await worker.run();
