"""The stream on which a remote worker receives jobs; reopened when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import ClassVar, Final

import grpc.aio

from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.call_errors import FINAL
from laneway.rpc.worker.connection import ReplicaConnection, Stream

# The longest wait for the first message; then another replica is tried.
HANDSHAKE_S: Final = 10.0
NOT_READY_S: Final = 0.05
# Workers of a stopping replica spread their reconnects over this time.
SOONEST_S: Final = 0.05
SOON_S: Final = 0.5
# A stream that lasted this long counts as a success.
LASTING_S: Final = 5.0


class AssignmentStream(Service):
    """Runs one stream per round, from its opening to its end."""

    name: ClassVar[str] = "stream"
    longest_backoff_s: ClassVar[float] = 5.0

    def __init__(
        self,
        connection: ReplicaConnection,
        warnings: LogThrottle,
        handshake: Callable[[], pb.StreamJobsRequest],
        on_message: Callable[[pb.StreamJobsResponse], None],
        is_ready: Callable[[], bool],
    ) -> None:
        super().__init__(warnings)
        self._connection = connection
        self._handshake = handshake
        self._on_message = on_message
        self._is_ready = is_ready
        self._call: Stream | None = None
        # Set while the worker is registered with a server.
        self.registered = asyncio.Event()
        # Done once a server has registered the worker, or refused it.
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run_once(self) -> float | None:
        if not self._is_ready():
            # Without a heartbeat, leases of new jobs would lapse.
            return NOT_READY_S
        self._call = call = self._connection.open(self._handshake())
        began = time.monotonic()
        try:
            failure = await self._read(call)
            was_registered = self.registered.is_set()
        finally:
            self.registered.clear()
            call.cancel()
        if self._call is not call:
            # We closed it on purpose.
            return 0.0
        self._connection.move_on()
        if was_registered and time.monotonic() - began > LASTING_S:
            self._warnings.warn(self.name, f"{failure}; connecting again")
            return random.uniform(SOONEST_S, SOON_S)
        if isinstance(failure, FINAL):
            if not self.first.done():
                self.first.set_exception(failure)
            # The token or the server may be fixed later.
            raise DatabaseUnavailable(str(failure)) from failure
        raise failure

    async def _read(self, call: Stream) -> LanewayError:
        """Passes messages on; returns the reason why the stream ended."""
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                message = await call.read()
            while isinstance(message, pb.StreamJobsResponse):
                if not self.registered.is_set():
                    self._on_registered()
                self._on_message(message)
                message = await call.read()
        except TimeoutError:
            return self._connection.no_answer()
        except grpc.aio.AioRpcError as error:
            return self._connection.failed(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The server cancelled it.
        return self._connection.ended()

    def _on_registered(self) -> None:
        self.registered.set()
        self._warnings.resolved(self.name)
        if not self.first.done():
            self.first.set_result(None)

    def _recovered(self) -> None:
        """Does nothing: `_on_registered` has already logged the recovery."""

    def reopen(self) -> None:
        """Opens a new stream, because the worker's handshake has changed."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    async def drain(self, within_s: float) -> None:
        """Stops receiving jobs: reopens the stream with the handshake of a stopping worker.

        Jobs that were being sent are not among the attempts it holds, so the server releases them.
        """
        await self.cancel()
        self._is_stopping = False
        self.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.registered.wait()
