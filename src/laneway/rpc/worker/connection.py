"""A worker's calls to the replicas: one channel to each address, made when it is needed."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import grpc
import grpc.aio

from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    LanewayError,
    ServerError,
    Unauthenticated,
)
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated import dispatch_pb2_grpc as pb_grpc
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.failures import failure_of

CALL_S: Final = 10.0
# A stream to a server that is gone has ended by then.
AWAY_S: Final = 30.0

Stream = grpc.aio.UnaryStreamCall[pb.StreamJobsRequest, pb.StreamJobsResponse]


class ReplicaConnection:
    """Calls go where the stream is, and elsewhere for a while once that does not answer."""

    def __init__(self, link: Endpoint) -> None:
        self._link = link
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._stubs: dict[str, Any] = {}
        self._stream_at = 0
        self._calls_at = 0
        # Where the newest stream was opened: results told there make room at once.
        self._home = 0
        self._away_since = 0.0

    @property
    def address(self) -> str:
        """Where the stream is, or is to be opened next."""
        return self._link.addresses[self._stream_at]

    def open(self, request: pb.StreamJobsRequest) -> Stream:
        """The stream of jobs; calls go there too from now on."""
        self._calls_at = self._home = self._stream_at
        self._link.token.renew()
        call: Stream = self._stub(self.address).StreamJobs(
            request, metadata=self._link.token.metadata
        )
        return call

    def failed(self, error: grpc.aio.AioRpcError) -> LanewayError:
        """Why the stream ended."""
        return self._failure(self.address, error)

    def silent(self) -> LanewayError:
        return DatabaseUnavailable(f"server {self.address}: does not answer")

    def ended(self) -> LanewayError:
        return DatabaseUnavailable(f"server {self.address}: ended the stream")

    def move_on(self) -> None:
        """The next stream is opened at another address, if there is one."""
        self._stream_at = (self._stream_at + 1) % len(self._link.addresses)

    async def call(self, method: str, request: Any, timeout_s: float = CALL_S) -> Any:
        """The answer; DatabaseUnavailable where it may be asked again, also with another token."""
        at = self._whom_to_call()
        address = self._link.addresses[at]
        try:
            ask = getattr(self._stub(address), method)
            return await ask(request, timeout=timeout_s, metadata=self._link.token.metadata)
        except grpc.aio.AioRpcError as error:
            failure = self._failure(address, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not we: the other end has cancelled it.
            failure = DatabaseUnavailable(f"server {address}: cancelled the call")
        if isinstance(failure, (DatabaseUnavailable, ServerError)) and self._calls_at == at:
            self._calls_at = (at + 1) % len(self._link.addresses)
            self._away_since = time.monotonic()
        # ServerError: a proxy whose server is away may say that it knows no such call.
        if isinstance(failure, (Unauthenticated, Forbidden, ServerError)):
            raise DatabaseUnavailable(f"server {address}: {failure}") from failure
        raise failure

    def _whom_to_call(self) -> int:
        if time.monotonic() - self._away_since > AWAY_S:
            self._calls_at = self._home
        return self._calls_at

    async def check(self, worker_id: str) -> None:
        """Asks whether the token may claim; raises what the server says to it."""
        address = self.address
        try:
            await self._stub(address).Heartbeat(
                pb.HeartbeatRequest(worker_id=worker_id),
                timeout=CALL_S,
                metadata=self._link.token.metadata,
            )
        except grpc.aio.AioRpcError as error:
            failure = self._failure(address, error)
            if isinstance(failure, DatabaseUnavailable):
                self.move_on()
                raise failure from None
            if isinstance(failure, (Unauthenticated, Forbidden)):
                raise failure from None

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    def _failure(self, address: str, error: grpc.aio.AioRpcError) -> LanewayError:
        failure = failure_of(address, error.code(), error.details())
        if isinstance(failure, (Unauthenticated, Forbidden)):
            self._link.token.renew()
        return failure

    def _stub(self, address: str) -> Any:
        if address not in self._stubs:
            self._channels[address] = channel = self._channel(address)
            self._stubs[address] = pb_grpc.DispatchServiceStub(channel)  # type: ignore[no-untyped-call]
        return self._stubs[address]

    def _channel(self, address: str) -> grpc.aio.Channel:
        options = self._link.options_to(address)
        if self._link.is_plain_to(address):
            return grpc.aio.insecure_channel(address, options=options)
        return grpc.aio.secure_channel(address, self._link.credentials(), options=options)
