// Writes src/_generated from the protocol: its definition, and the types of its messages.
// Nothing of it is committed, so it cannot lag behind.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const protocol = join(here, "..", "..", "..", "proto");
const file = "laneway/v1/dispatch.proto";
const into = join(here, "..", "src", "_generated");
const made = join(into, ".proto");

const text = readFileSync(join(protocol, file), "utf8");
if (existsSync(made) && readFileSync(made, "utf8") === text) process.exit(0);

const require = createRequire(import.meta.url);
rmSync(into, { recursive: true, force: true });
mkdirSync(into, { recursive: true });

// The values that src/protocol.ts reads and writes.
const shape = ["--longs=Number", "--enums=String", "--defaults", "--oneofs"];
const loader = dirname(require.resolve("@grpc/proto-loader/package.json"));
execFileSync(
    process.execPath,
    [
        join(loader, "build", "bin", "proto-loader-gen-types.js"),
        ...shape,
        "--grpcLib=@grpc/grpc-js",
        "--importFileExtension=.js",
        "--includeDirs=.",
        `--outDir=${into}`,
        file,
    ],
    { cwd: protocol },
);

// As a module and not as a file to read, so that bundlers take it along.
const { parse } = require("protobufjs");
const definition = parse(text, { keepCase: false }).root.toJSON();
writeFileSync(
    join(into, "definition.ts"),
    `export const definition = ${JSON.stringify(definition, null, 1)};\n`,
);
writeFileSync(made, text);
