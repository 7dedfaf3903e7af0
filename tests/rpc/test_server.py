"""The server for remote workers: where it may listen, what it says of its health, how it ends."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import psycopg
import pytest
from fastapi import FastAPI
from grpc_health.v1 import health_pb2, health_pb2_grpc

from laneway.app import server
from laneway.config.settings import Settings
from laneway.errors import ConfigError
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated.dispatch_pb2_grpc import DispatchServiceStub
from laneway.rpc.server import listener as rpc_server
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.certificates import make_certificate
from tests.rpc.rpc_harness import ACCEPTED, PATIENCE, Calls, RpcHarness, assigned
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ANYWHERE = "0.0.0.0"  # noqa: S104 -- refused, that is the point


@pytest.fixture
async def silent(dsn: str, settings: Settings, database: Database) -> RpcHarness:
    """A server that is not started."""
    return RpcHarness(dsn, settings, database)


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, Any]:
    """Settings with a certificate for 127.0.0.1."""
    make_certificate(tmp_path)
    return {"grpc_cert": tmp_path / "cert.pem", "grpc_key": tmp_path / "key.pem"}


async def health(channel: grpc.aio.Channel, service: str = "") -> int:
    stub = health_pb2_grpc.HealthStub(channel)
    asked = health_pb2.HealthCheckRequest(service=service)
    return int((await stub.Check(asked, timeout=PATIENCE)).status)


# -- where ------------------------------------------------------------------------------------


async def test_plain_text_is_for_this_machine_only(silent: RpcHarness) -> None:
    for host in (ANYWHERE, "::", "192.0.2.1", "example.invalid"):
        with pytest.raises(ConfigError, match="grpc_cert and grpc_key"):
            silent.server.listen(host, 0)
    assert silent.server.listen("localhost", 0).startswith("localhost:")


async def test_taken_port_is_an_error(silent: RpcHarness) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match=r"already in use: use another port with --grpc-port N"),
    ):
        silent.server.listen("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    "given, message",
    [
        ({"grpc_cert": "c.pem"}, "each needs the other"),
        ({"grpc_key": "k.pem"}, "each needs the other"),
        ({"grpc_cert": "c.pem", "grpc_key": "none.pem"}, "grpc_key: none.pem cannot be read"),
    ],
)
async def test_certificate_that_cannot_be_used_is_named(
    dsn: str, database: Database, given: dict[str, Any], message: str
) -> None:
    rpc = RpcHarness(dsn, Settings.load(database_url=dsn, **given), database)
    with pytest.raises(ConfigError, match=message):
        rpc.server.listen(ANYWHERE, 0)


@pytest.mark.parametrize("broken", ["grpc_cert", "grpc_key", "neither"])
async def test_certificate_that_does_not_fit_its_key_is_named(
    dsn: str, database: Database, certificate: dict[str, Any], tmp_path: Path, broken: str
) -> None:
    given = dict(certificate)
    if broken == "neither":
        (tmp_path / "other").mkdir()
        given["grpc_key"] = make_certificate(tmp_path / "other")[1]
    else:
        given[broken] = tmp_path / "text.pem"
        given[broken].write_text("no PEM")
    rpc = RpcHarness(dsn, Settings.load(database_url=dsn, **given), database)
    with pytest.raises(ConfigError, match="must be a certificate chain and its key"):
        rpc.server.listen("127.0.0.1", 0)


async def test_with_a_certificate_calls_are_encrypted(
    dsn: str, database: Database, people: People, certificate: dict[str, Any]
) -> None:
    ann = people.new("ann", "remote_worker")
    async with RpcHarness(dsn, Settings.load(database_url=dsn, **certificate), database) as rpc:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rpc.call(ann).beat()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, "that was plain text"
        trusted = grpc.ssl_channel_credentials(certificate["grpc_cert"].read_bytes())
        async with grpc.aio.secure_channel(rpc.address, trusted) as channel:
            assert await health(channel) == SERVING
            stub = DispatchServiceStub(channel)  # type: ignore[no-untyped-call]
            assert await Calls(stub, ann.token, uuid4()).beat() == []


def test_missing_packages_error_names_extra(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "laneway.rpc.server.listener")
    with pytest.raises(ConfigError, match=r"pip install 'laneway\[grpc\]'"):
        server.make_rpc("", settings, FastAPI())


# -- health and limits ------------------------------------------------------------------------


async def test_health_needs_no_token_and_follows_the_database(
    rpc: RpcHarness, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in ("", rpc_server.NAME):
        assert await health(rpc.channel, service) == SERVING
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await health(rpc.channel, "laneway.v1.Nothing")
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    nowhere = Database("host=127.0.0.1 port=1", rpc.settings, role="tests nowhere")
    monkeypatch.setattr(database, "run", nowhere.run)
    await wait_until(lambda: _is_told(rpc, NOT_SERVING))
    monkeypatch.undo()
    await wait_until(lambda: _is_told(rpc, SERVING))
    await nowhere.close()


def watch(rpc: RpcHarness) -> Any:
    stub = health_pb2_grpc.HealthStub(rpc.channel)
    return stub.Watch(health_pb2.HealthCheckRequest(service=rpc_server.NAME), timeout=PATIENCE)


async def test_health_watch_reports_stop_and_does_not_delay_it(
    rpc: RpcHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.rpc.server.health.MAX_WATCHERS", 2)
    stays, leaves = watch(rpc), watch(rpc)
    for one in (stays, leaves):
        assert (await one.read()).status == SERVING
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await watch(rpc).read()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    leaves.cancel()
    comes = await wait_until(lambda: watching(rpc))
    async with asyncio.timeout(PATIENCE):
        await rpc.server.stop(1000.0)
    for one in (stays, comes):
        assert (await one.read()).status == NOT_SERVING
        assert await one.read() is grpc.aio.EOF


async def watching(rpc: RpcHarness) -> Any:
    """A stream of what becomes of the server; None while too many watch."""
    stream = watch(rpc)
    try:
        assert (await stream.read()).status == SERVING
    except grpc.aio.AioRpcError:
        return None
    return stream


async def test_anonymous_calls_leave_little_memory(rpc: RpcHarness) -> None:
    stub = health_pb2_grpc.HealthStub(rpc.channel)
    asked = health_pb2.HealthCheckRequest(service="x" * 2000)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.Watch(asked, timeout=PATIENCE).read()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def _is_told(rpc: RpcHarness, status: int) -> bool:
    return await health(rpc.channel) == status


async def test_calls_without_database_are_unavailable_without_details(
    rpc: RpcHarness, people: People, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = people.new("ann", "remote_worker")
    nowhere = Database("host=127.0.0.1 port=1", rpc.settings)
    monkeypatch.setattr(database, "run", nowhere.run)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(ann).beat()
    monkeypatch.undo()
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "127.0.0.1" not in str(refused.value.details())


async def test_message_beyond_the_limit_is_not_read(rpc: RpcHarness, people: People) -> None:
    ann = people.new("ann", "remote_worker")
    large = pb.Result(finish=pb.Finish(result="x" * rpc.settings.grpc_message_bytes))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(ann).end(large)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_internal_error_is_reported_without_traceback(
    rpc: RpcHarness, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> object:
        raise KeyError("secret of ours")

    monkeypatch.setattr(rpc.authenticator, "authenticate", broken)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(people.new("ann", "remote_worker")).beat()
    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(refused.value.details())


# -- its end ----------------------------------------------------------------------------------


async def at_work(calls: Calls, factory: JobFactory) -> tuple[Any, pb.Assignment]:
    factory.submit()
    stream = await calls.connected()
    (one,) = await assigned(stream, 1)
    return stream, one


async def test_stopping_server_ends_streams_and_accepts_last_results(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    stream, one = await at_work(calls, factory)
    stopping = asyncio.ensure_future(rpc.server.stop(PATIENCE))
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await stream.read()
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "is stopping" in str(ended.value.details())
    assert await health(rpc.channel) == NOT_SERVING
    assert await calls.finish(one) == [ACCEPTED]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await calls.connected()
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    await stopping
    assert factory.conn.execute("select status from laneway.outcome").fetchall() == [("completed",)]


async def test_hurried_stop_does_not_wait_for_workers(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    stream, _ = await at_work(rpc.call(people.new("ann", "remote_worker")), factory)
    hurry = asyncio.Event()
    hurry.set()
    await rpc.server.stop(1000.0, hurry)
    with pytest.raises(grpc.aio.AioRpcError):
        await stream.read()


async def test_disconnected_worker_frees_its_stream_slot(
    rpc: RpcHarness, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    stream, _ = await at_work(rpc.call(people.new("ann", "remote_worker")), factory)
    assert rpc.authenticator.count == 1
    stream.cancel()
    await wait_until(lambda: rpc.authenticator.count == 0)
    assert conn.execute("select count(*) from laneway.lease").fetchone() == (1,)


STOPS = """
import os, signal, sys
import grpc
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated.dispatch_pb2_grpc import DispatchServiceStub

address, token, worker_id = sys.argv[1:]
types = [pb.JobType(name="greet")]
handshake = pb.StreamJobsRequest(worker_id=worker_id, job_types=types, max_in_flight=1)
stub = DispatchServiceStub(grpc.insecure_channel(address))
stream = stub.StreamJobs(handshake, metadata=[("authorization", "Bearer " + token)])
next(stream)
os.kill(os.getpid(), signal.SIGSTOP)
"""


async def test_worker_that_is_stopped_loses_its_stream_though_its_kernel_answers(
    dsn: str,
    settings: Settings,
    database: Database,
    people: People,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_server, "PING_S", 1)
    monkeypatch.setattr(rpc_server, "STOPPED_S", 1)
    token = people.new("ann", "remote_worker").token
    async with RpcHarness(dsn, settings, database) as rpc:
        arguments = (rpc.address, token, str(uuid4()))
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", STOPS, *arguments)
        try:
            await wait_until(lambda: rpc.authenticator.count == 1)
            await wait_until(lambda: rpc.authenticator.count == 0)
            assert program.returncode is None
        finally:
            program.kill()
            await program.wait()
