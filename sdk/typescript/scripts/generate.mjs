// Writes src/_generated: the protocol of workers from proto/, and the types of the client from the OpenAPI document.
// Nothing of it is committed, so it cannot lag behind.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { apiTypes } from "./api_types.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..", "..");
const into = join(here, "..", "src", "_generated");
const require = createRequire(import.meta.url);

// What src/client calls.
const OPERATIONS = [
    ...["submit_job", "submit_jobs", "get_job", "list_jobs", "explain_job", "stream_job"],
    ...["cancel_job", "approve_job", "reject_job", "retry_job", "run_job_now"],
    ...["submit_flow", "list_flows", "get_flow", "stream_flow", "cancel_flow", "retry_flow", "send_event"],
];

writeProtocol();
writeApi();

function writeProtocol() {
    const protocol = join(root, "proto");
    const file = "laneway/v1/dispatch.proto";
    const made = join(into, ".proto");
    const text = readFileSync(join(protocol, file), "utf8");
    if (existsSync(made) && readFileSync(made, "utf8") === text) return;

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
}

function writeApi() {
    const document = JSON.parse(readFileSync(join(root, "docs", "reference", "openapi.json"), "utf8"));
    const file = join(into, "api.ts");
    const text = apiTypes(document, OPERATIONS);
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
}
