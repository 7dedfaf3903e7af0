"""The server of a remote worker's calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import grpc
import pytest

from laneway.errors import DatabaseUnavailable, Unauthenticated
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker import connection as connection_module
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.rpc.worker.endpoint import Endpoint
from tests.rpc.scripted_server import TOKEN, ScriptedServer


async def test_calls_come_back_to_the_stream_after_a_while_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedServer() as first, ScriptedServer() as second:
        connection = ReplicaConnection(Endpoint.to(f"{first.address},{second.address}", TOKEN))
        request = pb.HeartbeatRequest(worker_id=str(uuid4()))
        first.refusals["Heartbeat"] = grpc.StatusCode.UNAVAILABLE, "no database"
        with pytest.raises(DatabaseUnavailable):
            await connection.call("Heartbeat", request)
        first.refusals.clear()
        await connection.call("Heartbeat", request)
        assert (len(first.asked), len(second.asked)) == (0, 1)
        monkeypatch.setattr(connection_module, "AWAY_S", 0.0)
        await connection.call("Heartbeat", request)
        assert (len(first.asked), len(second.asked)) == (1, 1)
        await connection.close()


async def test_unimplemented_call_is_not_a_refusal() -> None:
    async with ScriptedServer() as first, ScriptedServer() as second:
        connection = ReplicaConnection(Endpoint.to(f"{first.address},{second.address}", TOKEN))
        request = pb.HeartbeatRequest(worker_id=str(uuid4()))
        first.refusals["Heartbeat"] = grpc.StatusCode.UNIMPLEMENTED, "404"
        with pytest.raises(DatabaseUnavailable):
            await connection.call("Heartbeat", request)
        await connection.call("Heartbeat", request)
        assert len(second.asked) == 1
        await connection.close()


async def test_worker_at_an_http_port_is_told_the_grpc_port() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        connection = ReplicaConnection(Endpoint.to(address, TOKEN))
        with pytest.raises(
            DatabaseUnavailable, match=r"the HTTP port: use the server's --grpc-port"
        ):
            await connection.check(str(uuid4()))
        await connection.close()


async def test_refused_token_is_named_by_its_source(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    async with ScriptedServer() as server:
        server.refusals["Heartbeat"] = grpc.StatusCode.UNAUTHENTICATED, "the token is not valid"
        for endpoint, source in (
            (Endpoint.to(server.address, TOKEN), "LANEWAY_TOKEN or --token"),
            (Endpoint.to(server.address, token_file=str(file)), f"the file {file}"),
        ):
            connection = ReplicaConnection(endpoint)
            with pytest.raises(Unauthenticated) as error:
                await connection.check(str(uuid4()))
            assert str(error.value) == f"the token is not valid (the token of {source})"
            assert TOKEN not in str(error.value)
            await connection.close()
