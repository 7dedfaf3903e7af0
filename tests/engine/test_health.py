"""A worker's /healthz and /readyz: true to their word, and nothing elsewhere."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from laneway import Context
from laneway.config.settings import Settings
from laneway.engine.lease import heartbeat as heartbeat_module
from laneway.engine.lease.heartbeat import Heartbeat
from laneway.engine.process import health as module
from laneway.engine.process.health import WorkerHealth
from laneway.observability.metrics_endpoint import served
from tests.engine.test_metrics import two_ports
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


def ask(port: int, path: str) -> tuple[int, dict[str, str]]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        with refused as answer:
            return answer.code, json.load(answer)


async def asked(port: int, path: str) -> tuple[int, dict[str, str]]:
    return await asyncio.to_thread(ask, port, path)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is looked for."""
    monkeypatch.setattr(module, "FRESH_S", -1.0)


async def test_worker_is_ready_only_while_it_would_run_jobs(
    harness: WorkerHarness, fresh: None
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    health = WorkerHealth(harness.lw.settings)
    with served(0, "127.0.0.1", route=health.route) as port:
        assert (await asked(port, "/readyz"))[0] == 503
        worker = await harness.start_worker()
        health.watch(worker)
        await wait_until(lambda: worker.heartbeat.is_ready)
        health.turned()
        assert await asked(port, "/readyz") == (200, {"status": "ok"})
        pid = worker.heartbeat.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await wait_until(lambda: not worker.heartbeat.is_ready)
        health.turned()
        code, body = await asked(port, "/readyz")
        assert (code, body["reason"]) == (503, "heartbeats do not get through")
        await wait_until(lambda: worker.heartbeat.is_ready)
        await worker.stop()
        health.turned()
        code, body = await asked(port, "/readyz")
        assert (code, body["reason"]) == (503, "the worker is starting or stopping")


async def test_worker_is_starting_until_its_first_heartbeat(
    harness: WorkerHarness, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    @harness.lw.handler("job")
    async def job(ctx: Context) -> None: ...

    # A process that reads and never says that it is ready.
    monkeypatch.setattr(Heartbeat, "child", "tests.engine.silent_heartbeat")
    health = WorkerHealth(harness.lw.settings)
    with served(0, "127.0.0.1", route=health.route) as port:
        worker = await harness.start_worker()
        health.watch(worker)
        health.turned()
        code, body = await asked(port, "/readyz")
        assert (code, body["reason"]) == (503, "the worker is starting")
        monkeypatch.setattr(heartbeat_module, "READY_S", 0.01)
        pid = worker.heartbeat.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        async def is_late() -> bool:
            health.turned()
            return (await asked(port, "/readyz"))[1]["reason"] == "heartbeats do not get through"

        await wait_until(is_late)


async def test_health_names_a_loop_that_does_not_turn() -> None:
    health = WorkerHealth(Settings.load(loop_timeout=0.01))
    with served(0, "127.0.0.1", route=health.route) as port:
        await asyncio.sleep(0.02)
        code, body = await asked(port, "/healthz")
        assert code == 503
        assert "has been blocked" in body["reason"]


async def test_nothing_is_answered_before_the_routes_are_known() -> None:
    port = two_ports()
    asked_early = []

    def route(metrics: WSGIApplication) -> WSGIApplication:
        with socket.socket() as one:
            asked_early.append(one.connect_ex(("127.0.0.1", port)))
        return WorkerHealth(Settings.load()).route(metrics)

    with served(port, "127.0.0.1", route=route):
        assert asked_early == [errno.ECONNREFUSED]
        assert (await asked(port, "/healthz"))[0] == 200


async def test_other_paths_are_not_found() -> None:
    health = WorkerHealth(Settings.load())
    with served(0, "127.0.0.1", route=health.route) as port:
        assert (await asked(port, "/healthz"))[0] == 200
        for path in ("/", "/health", "/metrics/x", "/readyz/"):
            assert (await asked(port, path))[0] == 404


async def test_worker_command_has_a_name_and_a_health_endpoint(harness: WorkerHarness) -> None:
    port = two_ports()
    options = ("--name=press", f"--metrics-port={port}")
    with WorkerCommand(harness.dsn, *options) as command:

        def code_of(path: str) -> Callable[[], bool]:
            def look() -> bool:
                try:
                    return ask(port, path)[0] == 200
                except OSError:
                    return False

            return look

        await wait_until(lambda: asyncio.to_thread(code_of("/healthz")))
        await wait_until(lambda: asyncio.to_thread(code_of("/readyz")))
        assert harness.one("select name from laneway.workers") == "press"
        await wait_until(command.terminate_again)


async def test_supervised_processes_have_numbered_names(harness: WorkerHarness) -> None:
    with WorkerCommand(harness.dsn, "--processes=2", LANEWAY_WORKER_NAME="press") as command:
        await wait_until(lambda: harness.one("select count(*) = 2 from laneway.workers"))
        names = {name for (name,) in harness.rows("select name from laneway.workers")}
        assert names == {"press-1", "press-2"}
        await wait_until(command.terminate_again)
