"""The worker of docs/howto/other-languages.md, taken from the page, on a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from laneway import Laneway
from laneway.client.handle import JobHandle
from laneway.domain.states import Status
from laneway.errors import JobFailed
from tests.api.conftest import People
from tests.conformance.processes import ROOT, TYPESCRIPT, Process, ServerProcess, node
from tests.docs.test_code_blocks import read_blocks

PAGE = ROOT / "docs" / "howto" / "other-languages.md"
PATIENCE_S = 60.0
# More handlers than the page needs.
HANDLERS = """
import { handlers as shown } from "./shown.mjs";
export const handlers = {
  ...shown,
  fail: async () => { throw new TypeError("no"); },
  huge: async () => "x".repeat(40_000_000),
  nothing: async () => {},
  nap: async (payload, signal) => {
    console.error(`nap of ${payload.seconds} s began`);
    return shown.nap(payload, signal);
  },
};
"""


def blocks() -> dict[str, str]:
    return {one.title: one.code for one in read_blocks(PAGE) if one.title}


async def until(look: Callable[[], object], expected: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) != expected:
        assert time.monotonic() < deadline, f"{found!r}, not {expected!r}"
        await asyncio.sleep(0.02)


@asynccontextmanager
async def started(process: Process, look: Callable[[], bool]) -> AsyncIterator[None]:
    """Yield once the process is up; end it with the block."""
    try:
        await until(look, True)
        yield
    finally:
        process.end()


@pytest.fixture
def home(tmp_path: Path, conn: psycopg.Connection[Any]) -> Path:
    shown = blocks()
    (tmp_path / "worker.mjs").write_text(shown["worker.mjs"])
    (tmp_path / "shown.mjs").write_text(shown["handlers.mjs"])
    (tmp_path / "handlers.mjs").write_text(HANDLERS)
    proto = ROOT / "proto" / "laneway" / "v1" / "dispatch.proto"
    (tmp_path / "dispatch.proto").write_bytes(proto.read_bytes())
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT.parents[2] / "node_modules")
    conn.execute(
        "insert into laneway.worker_lanes (name, job_types, max_slots, lease_seconds)"
        " values ('far', '{shout,nap,fail,huge,nothing}', null, 2)"
    )
    return tmp_path


class Minimal(Process):
    """The page's worker."""

    def __init__(self, home: Path, address: str, token: str) -> None:
        super().__init__(
            [node(), str(home / "worker.mjs")],
            {"LANEWAY_GRPC": address, "LANEWAY_TOKEN": token},
            home / "worker.log",
            cwd=home,
        )


def test_worker_of_the_page_has_100_lines() -> None:
    assert len(blocks()["worker.mjs"].splitlines()) <= 100


@pytest.mark.timeout(180)
async def test_worker_of_the_page_keeps_the_rules(
    dsn: str, conn: psycopg.Connection[Any], people: People, home: Path
) -> None:
    token = people.new("robot", "remote_worker", lanes=["far"]).token
    server = ServerProcess(dsn, home / "server.log")

    def status(job: JobHandle[Any]) -> Status:
        row = conn.execute("select status from laneway.jobs_view where id = %s", [job.id])
        found = row.fetchone()
        assert found is not None
        return Status(found[0])

    def is_known() -> bool:
        row = conn.execute("select count(*) from laneway.workers where 'nap' = any (job_types)")
        return row.fetchone() == (1,)

    def has_begun(seconds: int) -> bool:
        # A claimed job may still be on its way to the worker.
        return f"nap of {seconds} s began" in (home / "worker.log").read_text()

    async with Laneway(dsn) as lw, started(server, lambda: server.is_serving):
        worker = Minimal(home, server.address, token)
        async with started(worker, is_known):
            shout = await lw.submit("shout", {"text": "anybody there?"})
            assert await shout.wait(PATIENCE_S) == "ANYBODY THERE?"
            nothing = await lw.submit("nothing", {})
            assert await nothing.wait(PATIENCE_S) is None

            failing = await lw.submit("fail", {}, max_retries=0)
            with pytest.raises(JobFailed, match="TypeError: no"):
                await failing.wait(PATIENCE_S)
            huge = await lw.submit("huge", {})
            with pytest.raises(JobFailed, match="InvalidResult"):
                await huge.wait(PATIENCE_S)

            endless = await lw.submit("nap", {"seconds": 3600})
            await until(lambda: status(endless), Status.RUNNING)
            await endless.cancel()
            with pytest.raises(JobFailed, match="was cancelled"):
                await endless.wait(PATIENCE_S)

            # Longer than the lease: only heartbeats keep it.
            nap = await lw.submit("nap", {"seconds": 5})
            assert await nap.wait(PATIENCE_S) == {"slept": 5}
            assert (await nap.get()).attempt == 1

            # Across a restart of the server, with a lease that outlasts it.
            conn.execute("update laneway.worker_lanes set lease_seconds = 120 where name = 'far'")
            nap = await lw.submit("nap", {"seconds": 6})
            await until(lambda: has_begun(6), True)
            server.terminate()
            await until(lambda: server.code, 0)
            again = ServerProcess(dsn, home / "server.log", server.port)
            async with started(again, lambda: again.is_serving):
                assert await nap.wait(PATIENCE_S) == {"slept": 6}
                assert (await nap.get()).attempt == 1

                last = await lw.submit("nap", {"seconds": 1})
                await until(lambda: has_begun(1), True)
                worker.terminate()
                assert await last.wait(PATIENCE_S) == {"slept": 1}
                await until(lambda: worker.code, 0)
