"""The packed npm package in an empty project: its files, its types and a program."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.conformance.processes import ROOT, TYPESCRIPT, node
from tests.http.threaded_server import served

SDK = TYPESCRIPT.parents[2]
# The scripts' npm: the one on PATH, or that of the development tools.
NPM = f'. {ROOT}/scripts/node.sh && python={ROOT}/.venv/bin/python && need_node 20 && npm "$@"'
QUIET = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
PROGRAM = """
import { Retry, Worker } from "laneway-worker";
import { ApiError, Client, type Job, type JobEventName } from "laneway-worker/client";

const client = new Client({ retries: 1 });
const job: Job = await client.submit({ job_type: "greet", payload: { to: "you" }, priority: 3 });
const names: JobEventName[] = [];
for await (const event of client.watch(job.id)) {
  names.push(event.name);
  if (event.name === "job.state") await client.cancel(job.id);
}
const refusal = await client.cancel(job.id).catch((error: unknown) => error);
const worker = new Worker({ server: "localhost:1", token: "t", logger: console });
worker.handle("greet", async (ctx) => {
  if (ctx.isLastAttempt) throw new Retry("busy", { afterMs: 1 });
});
const code = refusal instanceof ApiError ? refusal.code : String(refusal);
console.log(JSON.stringify({ names, code, priority: job.priority, worker: worker.id.length }));

// Each line below is a mistake. It compiles only if the types were not found.
export const mistakes = async (): Promise<void> => {
  // @ts-expect-error: a field that does not exist
  await client.submit({ job_type: "greet", jobtype: "x" });
  // @ts-expect-error: no job type
  await client.submit({ payload: {} });
  // @ts-expect-error: not a status
  client.list({ status: "done" });
  // @ts-expect-error: a number
  const text: string = job.attempt;
  // @ts-expect-error: not an option
  worker.handle("greet", { lanes: "far" }, async () => text);
};
"""


def npm(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", NPM, "npm", *arguments],
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("packed")
    npm("pack", "--silent", *QUIET, f"--pack-destination={into}", cwd=SDK)
    (archive,) = into.glob("*.tgz")
    return archive


def test_package_contains_only_what_it_exports(packed: Path) -> None:
    with tarfile.open(packed) as archive:
        names = {Path(name).relative_to("package").as_posix() for name in archive.getnames()}
    built = {name for name in names if name.startswith("dist/src/")}
    assert names - built == {"LICENSE", "README.md", "package.json"}
    exported = json.loads((SDK / "package.json").read_text("utf-8"))["exports"]
    assert {path[2:] for one in exported.values() for path in one.values()} <= built
    assert (SDK / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.timeout(300)
def test_package_works_in_an_empty_project(
    dsn: str, token: str, packed: Path, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    npm("install", *QUIET, "--prefer-offline", str(packed), cwd=tmp_path)
    (tmp_path / "app.ts").write_text(PROGRAM)
    compiler = SDK / "node_modules" / "typescript" / "bin" / "tsc"
    for module, resolution in (("esnext", "bundler"), ("node16", "node16")):
        options = f"--strict --module {module} --moduleResolution {resolution} --target es2022"
        checked = subprocess.run(
            [node(), str(compiler), *options.split(), "--types", "node", "app.ts"],
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )
        assert checked.returncode == 0, f"{resolution}: {checked.stdout}"
    with served(dsn) as url:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("LANEWAY_")}
        done = subprocess.run(
            [node(), "app.js"],
            cwd=tmp_path,
            env={**kept, "LANEWAY_SERVER": url, "LANEWAY_TOKEN": token},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "names": ["job.state", "job.cancelled"],
        "code": "refused",
        "priority": 3,
        "worker": 36,
    }


def test_lock_names_no_registry() -> None:
    lock = json.loads((SDK / "package-lock.json").read_text("utf-8"))
    assert [name for name, one in lock["packages"].items() if "resolved" in one] == []
