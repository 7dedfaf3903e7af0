"""The server of a remote worker's calls."""

from __future__ import annotations

from uuid import uuid4

import grpc
import pytest

from laneway.errors import DatabaseUnavailable
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
