"""The start of every call: authenticated, received and parsed, within its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from google.protobuf.message import DecodeError, Message

from laneway.config.settings import Settings
from laneway.control.throttle import Buckets
from laneway.rpc import messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server import wire
from laneway.rpc.server.auth import Authenticator, Context
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.rpc.server.handshake import read_id
from laneway.rpc.server.ownership import OwnedAttempt, Ownership
from laneway.rpc.server.stream_caller import StreamCaller

# The longest time for one call.
CALL_S: Final = 20.0
# Larger requests are read in a thread.
AT_ONCE_BYTES: Final = 64 * 1024
MAX_READERS: Final = 2
# A burst of one attempt's reports may be as large as its reports in this time. Workers merge
# updates of handlers, but each step is a report.
REPORTS_BURST_S: Final = 10.0
# The time for an answer to arrive.
_MARGIN_S: Final = 0.05

Q = TypeVar("Q", bound=Message)
B = TypeVar("B")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class ServedCall(Generic[Q]):
    """A call in progress."""

    caller: StreamCaller
    request: Q
    until: float

    @property
    def left_s(self) -> float:
        return self.until - time.monotonic()


class ServedCalls:
    """The base of all calls of remote workers: their tokens, their bytes and their attempts."""

    def __init__(
        self, dispatch: DispatchServer, authenticator: Authenticator, settings: Settings
    ) -> None:
        self._dispatch = dispatch
        self._authenticator = authenticator
        self._limits = settings.payload_limits
        self._readers = ThreadPoolExecutor(MAX_READERS, "laneway read")
        self._ownership = Ownership(dispatch.assignments, dispatch.database, dispatch.lane_of)
        per_second = settings.remote_reports_per_second
        self._reports = Buckets(per_second, max(1.0, per_second * REPORTS_BURST_S))

    async def close(self) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _begin(
        self, context: Context, name: str, kind: type[Q]
    ) -> AsyncIterator[ServedCall[Q]]:
        """Authenticates and reads a call, and bounds its time."""
        given_s = cast("float | None", context.time_remaining())
        within_s = CALL_S if given_s is None else min(CALL_S, given_s - _MARGIN_S)
        until = time.monotonic() + within_s
        async with asyncio.timeout(within_s):
            authenticated = await self._authenticator.authenticate(context, name)
            yield ServedCall(authenticated.caller, await self._receive(context, kind), until)

    async def _receive(self, context: Context, kind: type[Q]) -> Q:
        data = await context.read()
        if not isinstance(data, bytes):
            raise DecodeError("the call has no message")
        if len(data) <= AT_ONCE_BYTES:
            return wire.parse(kind, data, messages.MAX_OF)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, wire.parse, kind, data, messages.MAX_OF)

    async def _find(
        self, call: ServedCall[Any], worker_id: str, claims: Sequence[pb.Claim], place: str
    ) -> list[OwnedAttempt | None]:
        known = read_id(worker_id, "worker_id")
        if (stream := self._stream_of(call, worker_id)) is not None:
            stream.note_call()
        return await self._ownership.find(call.caller, known, claims, place.format)

    def _stream_of(self, call: ServedCall[Any], worker_id: str) -> Dispatcher | None:
        """The open stream of the worker that makes the call, if it is at this replica."""
        return self._dispatch.stream_of(read_id(worker_id, "worker_id"), call.caller.principal_id)

    async def _read(self, read: Callable[[Q, B], A], request: Q, found: B) -> A:
        if request.ByteSize() <= AT_ONCE_BYTES:
            return read(request, found)
        return await self._read_in_thread(read, request, found)

    async def _read_in_thread(self, read: Callable[[Q, B], A], request: Q, context: B) -> A:
        """Reads a large request without blocking other calls."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, read, request, context)
