"""Strangers, and calls made to cost memory, are refused before anything is built of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server import wire
from laneway.rpc.server.listener import NAME
from tests.api.conftest import People
from tests.rpc.rpc_harness import PATIENCE, RpcHarness

MIB = 1024 * 1024
METHODS = [one.name for one in pb.DESCRIPTOR.services_by_name["DispatchService"].methods]
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
# One empty message in field 2: an update, a result, a claim, an entry of a map …
EMPTY = b"\x12\x00"


async def send(rpc: RpcHarness, name: str, data: bytes, token: str | None) -> grpc.StatusCode:
    """Sends bytes as they are."""
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    options = [("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(rpc.address, options) as channel:
        method: Any = channel.unary_stream(f"/{NAME}/{name}")
        call = method(data, metadata=metadata, timeout=PATIENCE)
        try:
            while await call.read() is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError as error:
            return error.code()
        code: grpc.StatusCode = await call.code()
        return code


@contextmanager
def bounded_memory(most: int) -> Iterator[None]:
    """Fails if the process ever takes more than that on top of what it has."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    yield
    grown = _memory("VmHWM") - before
    assert grown <= most, f"{grown / MIB:.0f} MiB"


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of request that were built of bytes."""
    found: list[str] = []
    build = wire.build

    def counted(kind: Any, data: bytes) -> Any:
        found.append(kind.DESCRIPTOR.name)
        return build(kind, data)

    monkeypatch.setattr(wire, "build", counted)
    return found


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("token", [None, "nonsense"])
async def test_anonymous_messages_are_not_parsed(
    rpc: RpcHarness, parsed: list[str], name: str, token: str | None
) -> None:
    code = await send(rpc, name, EMPTY * (15 * MIB // 2), token)
    assert code in (UNAUTHENTICATED, EXHAUSTED)
    assert await send(rpc, name, EMPTY * 1000, token) is UNAUTHENTICATED
    assert await send(rpc, name, b"\xff", token) is UNAUTHENTICATED, "not even that it is none"
    assert parsed == []


async def test_anonymous_calls_leave_no_memory(rpc: RpcHarness) -> None:
    data = EMPTY * (15 * MIB // 2)
    with bounded_memory(150 * MIB):
        for _ in range(3):
            await send(rpc, "ReportProgress", data, None)


async def test_message_is_at_most_4_mib_by_default(rpc: RpcHarness, people: People) -> None:
    ann = people.new("ann", "remote_worker")
    data = pb.ReportResultRequest(worker_id="x" * (4 * MIB + 1)).SerializeToString()
    assert await send(rpc, "ReportResult", data, ann.token) is EXHAUSTED


FLOODS = {
    "Heartbeat": pb.HeartbeatRequest(claims=[pb.Claim()]),
    "ReportProgress": pb.ReportProgressRequest(updates=[pb.Update()]),
    "ReportResult": pb.ReportResultRequest(results=[pb.Result()]),
    "AcquireLimits": pb.AcquireLimitsRequest(wants={"": 0}),
    "ReleaseLimits": pb.ReleaseLimitsRequest(keeps={"": 0}),
    "ReadWaits": pb.ReadWaitsRequest(claim=pb.Claim()),
    "BeginWait": pb.BeginWaitRequest(claim=pb.Claim()),
    "SubmitSubJobs": pb.SubmitSubJobsRequest(jobs=[pb.SubJob()]),
    "ReadResults": pb.ReadResultsRequest(claim=pb.Claim()),
    "StreamJobs": pb.StreamJobsRequest(holds=[pb.Claim()]),
}


@pytest.mark.parametrize("name", METHODS)
async def test_repeated_fields_are_counted_before_they_are_built(
    rpc: RpcHarness, people: People, parsed: list[str], name: str
) -> None:
    token = people.new("ann", "remote_worker").token
    one = FLOODS[name].SerializeToString()
    unknown = b"\x98\x06\x00"
    inside = pb.ReportProgressRequest(updates=[pb.Update(lines=[pb.LogLine()] * 500_000)])
    with bounded_memory(250 * MIB):
        assert await send(rpc, name, one * (4 * MIB // len(one) - 1), token) is INVALID
        assert await send(rpc, name, unknown * (4 * MIB // 3 - 1), token) is INVALID
        if name == "ReportProgress":
            assert await send(rpc, name, inside.SerializeToString(), token) is INVALID
    assert parsed == []


@pytest.mark.parametrize(
    "data",
    [
        *(b"\x12", b"\x12\xff", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x80"),
        *(b"\x13" * 4000, b"\x14", b"\x0d\x00", b"\x09\x00", b"\x12\x05\x12\x09aaa", b"\x07"),
    ],
)
async def test_invalid_message_bytes_are_refused(
    rpc: RpcHarness, people: People, data: bytes
) -> None:
    token = people.new("ann", "remote_worker").token
    large = pb.ReportProgressRequest(worker_id="x" * wire.SMALL_BYTES).SerializeToString()
    for sent in (data, large + data):
        assert await send(rpc, "ReportProgress", sent, token) is INVALID


async def test_anonymous_health_request_is_bounded(rpc: RpcHarness) -> None:
    channel = grpc.aio.insecure_channel(rpc.address)
    for name in ("Check", "Watch"):
        method: Any = channel.unary_stream(f"/grpc.health.v1.Health/{name}")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await method(b"\x98\x06\x00" * 1_000_000, timeout=PATIENCE).read()
        assert refused.value.code() is INVALID
    await channel.close()
