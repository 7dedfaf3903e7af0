"""The stream that a remote worker gets its jobs by: opened, and opened again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import ClassVar, Final

import grpc.aio

from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, LanewayError
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.connection import ReplicaConnection, Stream
from laneway.rpc.worker.failures import FINAL

# To say that the worker is known; after that another replica is asked.
HELLO_S: Final = 10.0
NOT_READY_S: Final = 0.05
# A replica that stops has many workers: not all of them at once to the next one.
SOONEST_S: Final = 0.05
SOON_S: Final = 0.5
# A stream that lasted so long was a good one.
LASTING_S: Final = 5.0


class AssignmentStream(Service):
    """One round is one stream, from its opening to its end."""

    name: ClassVar[str] = "stream"
    longest_backoff_s: ClassVar[float] = 5.0

    def __init__(
        self,
        connection: ReplicaConnection,
        complaints: ThrottledWarnings,
        hello: Callable[[], pb.StreamJobsRequest],
        on_message: Callable[[pb.StreamJobsResponse], None],
        is_ready: Callable[[], bool],
    ) -> None:
        super().__init__(complaints)
        self._connection = connection
        self._hello = hello
        self._on_message = on_message
        self._is_ready = is_ready
        self._call: Stream | None = None
        # Set while a server knows the worker.
        self.known = asyncio.Event()
        # Done once a server has known it, or refuses to.
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run_once(self) -> float | None:
        if not self._is_ready():
            # Nobody would renew what is assigned now.
            return NOT_READY_S
        self._call = call = self._connection.open(self._hello())
        began = time.monotonic()
        try:
            failure = await self._read(call)
            was_known = self.known.is_set()
        finally:
            self.known.clear()
            call.cancel()
        if self._call is not call:
            # By our own will.
            return 0.0
        self._connection.move_on()
        if was_known and time.monotonic() - began > LASTING_S:
            self._warnings.warn(self.name, f"{failure}; connecting again")
            return random.uniform(SOONEST_S, SOON_S)
        if isinstance(failure, FINAL):
            if not self.first.done():
                self.first.set_exception(failure)
            # A token may be renewed, and a server mended.
            raise DatabaseUnavailable(str(failure)) from failure
        raise failure

    async def _read(self, call: Stream) -> LanewayError:
        """Hands on what comes; answers why no more does."""
        try:
            async with asyncio.timeout(HELLO_S):
                message = await call.read()
            while isinstance(message, pb.StreamJobsResponse):
                if not self.known.is_set():
                    self._greeted()
                self._on_message(message)
                message = await call.read()
        except TimeoutError:
            return self._connection.silent()
        except grpc.aio.AioRpcError as error:
            return self._connection.failed(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The other end has cancelled it.
        return self._connection.ended()

    def _greeted(self) -> None:
        self.known.set()
        self._warnings.resolved(self.name)
        if not self.first.done():
            self.first.set_result(None)

    def _recovered(self) -> None:
        """Was told when the server greeted; a round is over when its stream has ended."""

    def reopen(self) -> None:
        """What is to be said of the worker has changed."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    async def drain(self, within_s: float) -> None:
        """Takes no more: the stream is opened anew as that of a worker that stops.

        What was on its way is not among what the worker says it holds, and so is given back.
        """
        await self.cancel()
        self._is_stopping = False
        self.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.known.wait()
