"""Whatever is thrown at a call, its answer says what to do: never INTERNAL, never UNKNOWN."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from laneway.config.settings import Settings
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.store.database import Database
from tests.api.conftest import People
from tests.rpc.rpc_harness import Calls, RpcHarness, assigned
from tests.support.job_factory import JobFactory

EXAMPLES = 60
# What a call that was understood, or refused for a reason, may end with.
SOUND = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
}
CLAIM = ("job_id", "attempt")
METHODS = pb.DESCRIPTOR.services_by_name["DispatchService"].methods
WHOLE = (-(2**31), -1, 0, 1, 2, 1000, 2**31 - 1)
WIDE = (-(2**63), -1, 0, 1, 250, 10**12, 2**63 - 1)
TEXTS = (
    *("", "null", "{}", "[1, 2]", '{"a": 1e400}', '"\\u0000"', "{", "1e-99999", "[" * 200),
    *("greet", "openai", "info", "loud", "\x00", "\x01greet", "ü" * 300, "a" * 9000),
    '{"lane": "default", "approval": true}',
)


class Thrower:
    """A worker with a running job, on a separate event loop: hypothesis has none."""

    def __init__(self, dsn: str, people: People, factory: JobFactory) -> None:
        self.runner = asyncio.Runner()
        self.token = people.new("ann", "remote_worker").token
        for _ in range(3):
            factory.submit("greet")
        self.runner.run(self._begin(dsn))

    async def _begin(self, dsn: str) -> None:
        chosen = Settings.load(database_url=dsn, requests_per_second=0)
        self.database = Database(dsn, chosen, role="tests rpc")
        self.rpc = await RpcHarness(dsn, chosen, self.database).__aenter__()
        self.calls: Calls = self.rpc.call(self.token)
        self.stream = await self.calls.connected()
        self.job_ids = [one.job_id for one in await assigned(self.stream, 3)]

    def throw(self, name: str, request: Any) -> grpc.StatusCode:
        return self.runner.run(self._throw(name, request))

    async def _throw(self, name: str, request: Any) -> grpc.StatusCode:
        try:
            if name == "StreamJobs":
                stream = self.calls.stream_of(request)
                await asyncio.wait_for(stream.read(), 60)
                stream.cancel()
            else:
                await self.calls.make(name, request)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def close(self) -> None:
        self.runner.run(self._end())
        self.runner.close()

    async def _end(self) -> None:
        await self.rpc.__aexit__(None, None, None)
        await self.database.close()


@pytest.fixture
def thrower(dsn: str, people: People, factory: JobFactory) -> Iterator[Thrower]:
    thrower = Thrower(dsn, people, factory)
    yield thrower
    thrower.close()


def messages(of: Descriptor, ids: list[str]) -> SearchStrategy[Any]:
    """Messages of a kind; ids are likely to be those of a worker and its jobs."""
    kind: Any = GetMessageClass(of)
    fields = {field.name: values(field, ids) for field in of.fields}
    # Without these nothing of the rest is looked at.
    always = {name: fields.pop(name) for name in ("worker_id", "claim", *CLAIM) if name in fields}
    return st.fixed_dictionaries(always, optional=fields).map(lambda chosen: kind(**chosen))


def values(field: FieldDescriptor, ids: list[str]) -> SearchStrategy[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(WHOLE), max_size=3)
    one = single(field, ids)
    return st.lists(one, max_size=3) if field.is_repeated else one


def single(field: FieldDescriptor, ids: list[str]) -> SearchStrategy[Any]:
    if field.message_type is not None:
        return messages(field.message_type, ids)
    if field.enum_type is not None:
        return st.integers(-1, 5)
    match field.type:
        case FieldDescriptor.TYPE_STRING if field.name == "worker_id":
            return st.sampled_from([ids[0]] * 9 + ["x"])
        case FieldDescriptor.TYPE_STRING if field.name == "job_id":
            return st.sampled_from([*ids * 3, "x"])
        case FieldDescriptor.TYPE_INT32 if field.name == "attempt":
            return st.sampled_from([1] * 9 + [2, 0])
        case FieldDescriptor.TYPE_STRING:
            return st.sampled_from(TEXTS) | st.text(max_size=20)
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_DOUBLE:
            return st.floats()
        case FieldDescriptor.TYPE_INT32:
            return st.sampled_from(WHOLE)
        case _:
            return st.sampled_from(WIDE)


@pytest.mark.parametrize("name", [method.name for method in METHODS])
def test_no_message_is_answered_with_a_mistake_of_ours(thrower: Thrower, name: str) -> None:
    method = next(one for one in METHODS if one.name == name)
    ids = [thrower.calls.worker_id, *thrower.job_ids]
    seen: set[grpc.StatusCode] = set()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )  # fmt: skip
    @given(messages(method.input_type, ids))
    def check(request: Any) -> None:
        code = thrower.throw(name, request)
        seen.add(code)
        assert code in SOUND, f"{code} for {request}"

    check()
    assert grpc.StatusCode.INVALID_ARGUMENT in seen


@pytest.mark.parametrize("name", [method.name for method in METHODS])
def test_no_bytes_are_answered_with_a_mistake_of_ours(thrower: Thrower, name: str) -> None:
    rpc = thrower.rpc
    path = f"/laneway.v1.DispatchService/{name}"
    metadata = [("authorization", f"Bearer {thrower.token}")]

    async def throw(data: bytes) -> grpc.StatusCode:
        try:
            if name == "StreamJobs":
                opened: Any = rpc.channel.unary_stream(path)
                stream = opened(data, metadata=metadata)
                await asyncio.wait_for(stream.read(), 60)
                stream.cancel()
            else:
                call: Any = rpc.channel.unary_unary(path)
                await call(data, metadata=metadata, timeout=20)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    @settings(max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.binary(max_size=60))
    def check(data: bytes) -> None:
        assert thrower.runner.run(throw(data)) in SOUND

    check()
