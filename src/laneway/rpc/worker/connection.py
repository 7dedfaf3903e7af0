"""A worker's calls to replicas: one channel to each address, opened on first use."""

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
from laneway.rpc.worker.call_errors import failure_of
from laneway.rpc.worker.endpoint import Endpoint

CALL_S: Final = 10.0
# After this time a stream to a lost server has ended, and calls return to the stream's server.
AWAY_S: Final = 30.0

Stream = grpc.aio.UnaryStreamCall[pb.StreamJobsRequest, pb.StreamJobsResponse]


class ReplicaConnection:
    """Sends calls to the replica of the stream, or for a while to others if it does not answer."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._stubs: dict[str, Any] = {}
        self._stream_at = 0
        self._calls_at = 0
        # The address of the newest stream: results sent there make room at once.
        self._home = 0
        self._away_since = 0.0

    @property
    def address(self) -> str:
        """The address of the current or next stream."""
        return self._endpoint.addresses[self._stream_at]

    def open(self, request: pb.StreamJobsRequest) -> Stream:
        """Opens the stream of jobs; calls go to the same address from now on."""
        self._calls_at = self._home = self._stream_at
        self._endpoint.token.renew()
        call: Stream = self._stub(self.address).StreamJobs(
            request, metadata=self._endpoint.token.metadata
        )
        return call

    def failed(self, error: grpc.aio.AioRpcError) -> LanewayError:
        """The reason why the stream ended."""
        return self._failure(self.address, error)

    def no_answer(self) -> LanewayError:
        return DatabaseUnavailable(f"server {self.address}: does not answer")

    def ended(self) -> LanewayError:
        return DatabaseUnavailable(f"server {self.address}: ended the stream")

    def move_on(self) -> None:
        """Opens the next stream at another address, if there is one."""
        self._stream_at = (self._stream_at + 1) % len(self._endpoint.addresses)

    async def call(self, method: str, request: Any, timeout_s: float = CALL_S) -> Any:
        """The response; DatabaseUnavailable if the call may be repeated, also with a new token."""
        at = self._call_target()
        address = self._endpoint.addresses[at]
        try:
            send = getattr(self._stub(address), method)
            return await send(request, timeout=timeout_s, metadata=self._endpoint.token.metadata)
        except grpc.aio.AioRpcError as error:
            failure = self._failure(address, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The server cancelled it, not this task.
            failure = DatabaseUnavailable(f"server {address}: cancelled the call")
        if isinstance(failure, (DatabaseUnavailable, ServerError)) and self._calls_at == at:
            self._calls_at = (at + 1) % len(self._endpoint.addresses)
            self._away_since = time.monotonic()
        # ServerError: a proxy without its server may answer that the call does not exist.
        if isinstance(failure, (Unauthenticated, Forbidden, ServerError)):
            raise DatabaseUnavailable(f"server {address}: {failure}") from failure
        raise failure

    def _call_target(self) -> int:
        if time.monotonic() - self._away_since > AWAY_S:
            self._calls_at = self._home
        return self._calls_at

    async def check(self, worker_id: str) -> None:
        """Checks that the token may claim; raises the server's error."""
        address = self.address
        try:
            await self._stub(address).Heartbeat(
                pb.HeartbeatRequest(worker_id=worker_id),
                timeout=CALL_S,
                metadata=self._endpoint.token.metadata,
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
            self._endpoint.token.renew()
        if isinstance(failure, Unauthenticated):
            failure = Unauthenticated(f"{failure} (the token of {self._endpoint.token.source})")
        return failure

    def _stub(self, address: str) -> Any:
        if address not in self._stubs:
            self._channels[address] = channel = self._channel(address)
            self._stubs[address] = pb_grpc.DispatchServiceStub(channel)  # type: ignore[no-untyped-call]
        return self._stubs[address]

    def _channel(self, address: str) -> grpc.aio.Channel:
        options = self._endpoint.options_to(address)
        if self._endpoint.is_plain_to(address):
            return grpc.aio.insecure_channel(address, options=options)
        return grpc.aio.secure_channel(address, self._endpoint.credentials(), options=options)
