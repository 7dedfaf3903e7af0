"""A replica without gRPC: streams that connect, take jobs and end them, as calls would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.domain.job_type_policy import TypeRecord
from laneway.rpc.server.assignment_queue import Beat, OutAssignment
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.rpc.server.handshake import ServedType, StreamHandshake
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store.leases import Verdict, WriteResult
from laneway.store.notify import CHANNEL
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until

PATIENCE = 60.0
ANN = StreamCaller(uuid4(), "ann", declares=None)


def handshake(*types: str | ServedType, **fields: Any) -> StreamHandshake:
    """The handshake of a worker with room for ten jobs."""
    given = StreamHandshake(
        worker_id=uuid4(),
        name="tests",
        types=tuple(_type(one) for one in types or ("t",)),
        max_in_flight=10,
        max_async=0,
        max_threads=0,
        max_processes=0,
        holds=frozenset(),
        host="here",
        pid=1,
        code="1",
        memory_bytes=None,
    )
    return replace(given, **fields)


def _type(given: str | ServedType) -> ServedType:
    return given if isinstance(given, ServedType) else ServedType(given, "async", False, None)


def declared(name: str, **fields: Any) -> ServedType:
    """A job type with its declaration."""
    settings = {"lane": None, "priority": None, "max_retries": 3, "timeout_s": None, **fields}
    record = TypeRecord(name=name, arguments="{}", isolation="async", stale="heartbeat", **settings)
    return ServedType(name, "async", record.has_analysis, record)


class StreamClient:
    """A worker that reads its stream as fast as it is written, and ends jobs on request."""

    def __init__(
        self, replica: DispatchServer, dispatcher: Dispatcher, handshake: StreamHandshake
    ) -> None:
        self.replica = replica
        self.dispatcher = dispatcher
        self.handshake = handshake
        self.jobs: list[OutAssignment] = []
        self.beats = 0
        self.messages = 0
        self._reading: asyncio.Task[None] | None = None

    @property
    def id(self) -> UUID:
        return self.handshake.worker_id

    def read(self) -> None:
        """Start to read the stream."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for batch in self.dispatcher.batches():
            self.messages += 1
            if isinstance(batch, Beat):
                self.beats += 1
            else:
                self.jobs += batch

    async def got(self, count: int) -> list[OutAssignment]:
        await wait_until(lambda: len(self.jobs) >= count)
        return self.jobs

    async def end(self, kind: str = "finish", count: int | None = None) -> list[WriteResult]:
        """End all its jobs, or the first `count`."""
        ended = self.jobs[:count]
        del self.jobs[: len(ended)]
        return await settle(self.replica, [one.claim for one in ended], kind)

    def stop_reading(self) -> None:
        """Break the connection without the replica's knowledge."""
        assert self._reading is not None
        self._reading.cancel()

    async def disconnect(self) -> None:
        """Break the connection."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self.dispatcher.close()

    async def over(self) -> None:
        """Wait until the stream has ended by itself."""
        assert self._reading is not None
        async with asyncio.timeout(PATIENCE):
            await self._reading


async def settle(
    replica: DispatchServer, claims: Sequence[Claim], kind: str = "finish"
) -> list[WriteResult]:
    return await replica.settle([Verdict(claim, kind, "null") for claim in claims], 20.0)


def notify(factory: JobFactory, message: str) -> None:
    """Send a notification."""
    factory.conn.execute("select pg_notify(%s, %s)", [CHANNEL, message])


class DispatchHarness:
    """One replica and its streams."""

    def __init__(self, dsn: str, settings: Settings) -> None:
        self.replica = DispatchServer(dsn, settings)
        self.clients: list[StreamClient] = []

    async def __aenter__(self) -> Self:
        await self.replica.start()
        if self.replica.settings.can_listen:
            await wait_until(lambda: self.replica.listening.is_listening)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self.clients:
            await client.disconnect()
        await self.replica.stop()

    async def connect(
        self, given: StreamHandshake | None = None, caller: StreamCaller = ANN
    ) -> StreamClient:
        """Connect a worker that reads its stream."""
        client = await self.connect_without_reading(given, caller)
        client.read()
        return client

    async def connect_without_reading(
        self, given: StreamHandshake | None = None, caller: StreamCaller = ANN
    ) -> StreamClient:
        """Connect a worker that does not read yet."""
        given = given or handshake()
        client = StreamClient(self.replica, await self.replica.open(given, caller), given)
        self.clients.append(client)
        return client
