import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const documents = ["README.md", "../../docs/howto/typescript.md"];

it("the examples in the documents are right, as far as types tell", () => {
  const into = join(root, "dist", "examples");
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  for (const [at, document] of documents.entries()) {
    const text = readFileSync(join(root, document), "utf8");
    const blocks = [...text.matchAll(/^```ts\n([^]*?)^```$/gm)];
    assert.ok(blocks.length > 0, document);
    blocks.forEach((block, i) => writeFileSync(join(into, `${at}_${i}.ts`), block[1] as string));
  }
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: {
      noEmit: true,
      incremental: false,
      tsBuildInfoFile: null,
      declaration: false,
      rootDir: "../..",
      paths: {
        "laneway-worker": ["../src/index.d.ts"],
        "laneway-worker/client": ["../src/client/index.d.ts"],
      },
    },
    include: ["*.ts"],
    exclude: [],
  };
  writeFileSync(join(into, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", into], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
});
