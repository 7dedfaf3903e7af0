"""`laneway remote-worker`: what it asks for, how it is refused, how it stops."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from laneway.cli.exits import ExitCode
from laneway.rpc._generated import dispatch_pb2 as pb
from tests.cli.conftest import invoke
from tests.rpc.processes import APP, RemoteWorkerCommand
from tests.rpc.scripted_server import TOKEN, ScriptedServer, assignment
from tests.support.worker_harness import wait_until


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


def _refused(*args: str, **env: str) -> tuple[int, str]:
    alone: dict[str, Any] = {"LANEWAY_TOKEN": None, "LANEWAY_TOKEN_FILE": None}
    found = invoke("remote-worker", *args, env={**alone, **env})
    return found.exit_code, " ".join(found.output.split())


def test_usage_errors_take_one_line_and_hide_token() -> None:
    code, text = _refused(APP)
    assert (code, "--server" in text) == (2, True)
    code, text = _refused(APP, "--server", "127.0.0.1:1")
    assert (code, "tokens create" in text) == (2, True)
    code, text = _refused(APP, "--server", "nowhere", LANEWAY_TOKEN=TOKEN)
    assert (code, "server: must be host:port" in text) == (2, True)
    code, text = _refused(APP, "--server", "a:1", "--tls-ca", "/none", LANEWAY_TOKEN=TOKEN)
    assert (code, "tls_ca: cannot read /none" in text, TOKEN in text) == (2, True, False)
    found = invoke("--server", "a:1", "remote-worker", APP)
    assert (found.exit_code, "after `remote-worker`" in " ".join(found.output.split())) == (2, True)


async def test_refused_token_ends_it_with_the_servers_words(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.refusals["Heartbeat"] = grpc.StatusCode.PERMISSION_DENIED, "needs workers:claim"
    log = tmp_path / "log"
    for options in ((), ("--processes=2",)):
        with RemoteWorkerCommand(server.address, *options, log=log) as worker:
            await wait_until(lambda of=worker: of.process.poll() is not None)  # type: ignore[misc]
            assert worker.process.returncode == ExitCode.REFUSED
            assert "laneway: needs workers:claim" in log.read_text()


async def test_signal_drains_and_a_second_one_releases_at_once(
    server: ScriptedServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with RemoteWorkerCommand(server.address, "--grace=60s", "--name=far away", log=log) as worker:
        await wait_until(lambda: server.handshakes)
        assert server.handshakes[0].name == "far away"
        one = assignment("wait")
        server.send(one)
        await wait_until(lambda: server.of(pb.ReportProgressRequest))
        worker.terminate()
        await wait_until(lambda: len(server.handshakes) == 2)
        assert server.handshakes[1].max_in_flight == 0
        worker.terminate()
        await wait_until(worker.all_gone)
    assert worker.process.returncode == 0
    assert server.results[one.job_id].WhichOneof("outcome") == "release"
    assert "Traceback" not in log.read_text()


async def test_several_processes_are_several_workers_and_a_killed_one_is_replaced(
    server: ScriptedServer,
) -> None:
    with RemoteWorkerCommand(server.address, "--processes=2", "--concurrency=3") as command:
        await wait_until(lambda: len(server.handshakes) == 2)
        assert len({one.worker_id for one in server.handshakes}) == 2
        assert {one.max_async for one in server.handshakes} == {3}
        (killed, _) = (one.pid for one in server.handshakes)
        next(p for p in command.tree() if p.pid == killed).kill()
        await wait_until(lambda: len({one.worker_id for one in server.handshakes}) == 3)
        command.terminate()
        await wait_until(command.all_gone)
    assert command.process.returncode == 0


async def test_remote_worker_starts_no_database(server: ScriptedServer, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with RemoteWorkerCommand(server.address, LANEWAY_DATA_DIR=str(data)):
        await wait_until(lambda: server.handshakes)
        one = assignment("submit_process")
        server.send(one)
        await wait_until(lambda: one.job_id in server.results)
    assert server.results[one.job_id].fail.error.type == "NeedsDatabase"
    assert not data.exists()
