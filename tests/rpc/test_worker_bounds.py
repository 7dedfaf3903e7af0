"""Bounds on the jobs of a remote worker, at once and in all; a frozen heartbeat process."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from laneway import Context, Laneway, SyncContext
from laneway.config.settings import Settings
from laneway.rpc.worker.worker import RemoteWorker
from tests.rpc.scripted_server import ScriptedServer, assignment
from tests.support.worker_harness import QUICK, wait_until


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
def lw(monkeypatch: pytest.MonkeyPatch) -> Laneway:
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    lw = Laneway(embedded=False, **QUICK)

    @lw.handler("on_loop")
    async def on_loop(ctx: Context) -> int:
        return 1

    @lw.handler("in_thread")
    def in_thread(ctx: SyncContext) -> int:
        return 1

    return lw


def worker_of(lw: Laneway, server: ScriptedServer, max_jobs: int | None = None, **more: Any) -> Any:
    settings = Settings.load(embedded=False, **QUICK, **more)
    return RemoteWorker(lw.handlers, settings, server.link, max_jobs=max_jobs)


async def test_remote_worker_asks_for_no_more_than_its_slots(
    lw: Laneway, server: ScriptedServer
) -> None:
    async with worker_of(lw, server, slots=1):
        assert server.handshakes[0].max_in_flight == 1


async def test_remote_worker_runs_exactly_max_jobs(lw: Laneway, server: ScriptedServer) -> None:
    async with worker_of(lw, server, max_jobs=1) as worker:
        assert server.handshakes[0].max_in_flight == 1
        # A server that sends more than it was asked for.
        sent = [assignment("on_loop"), assignment("in_thread")]
        server.send(*sent)
        await worker.spent.wait()
        await wait_until(lambda: all(one.job_id in server.results for one in sent))
        kinds = [server.results[one.job_id].WhichOneof("outcome") for one in sent]
        assert kinds == ["finish", "release"]
        await wait_until(lambda: server.handshakes[-1].max_in_flight == 0)


async def test_remote_worker_replaces_a_frozen_heartbeat_process(
    lw: Laneway, server: ScriptedServer
) -> None:
    async with worker_of(lw, server) as worker:
        frozen = worker.heartbeat.pid
        streams = len(server.handshakes)
        os.kill(frozen, signal.SIGSTOP)
        await wait_until(lambda: worker.heartbeat.pid not in (None, frozen))
        # Its stream is reopened once a heartbeat process can renew new jobs.
        await wait_until(lambda: len(server.handshakes) > streams and worker.heartbeat.is_answering)
