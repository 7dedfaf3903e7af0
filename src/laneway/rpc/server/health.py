"""The gRPC health service, which load balancers call without a token."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1.health_pb2_grpc import HealthServicer

from laneway.errors import RateLimited

MAX_WATCHERS: Final = 1000
_SERVING: Final = pb.HealthCheckResponse.SERVING
_NOT_SERVING: Final = pb.HealthCheckResponse.NOT_SERVING
_UNKNOWN: Final = pb.HealthCheckResponse.SERVICE_UNKNOWN


class RpcHealth(HealthServicer):  # type: ignore[misc]
    """Health of the server and of its one service, which is always the same.

    Unlike grpcio-health-checking: a watcher that leaves does not end others, little input of
    unauthenticated callers is stored, and watchers do not keep the server from stopping.
    """

    def __init__(self, service: str) -> None:
        self._names = ("", service)
        self._status = _NOT_SERVING
        self._changed = asyncio.Event()
        self._is_over = False
        self._watchers = 0

    def update(self, *, is_serving: bool) -> None:
        status = _SERVING if is_serving and not self._is_over else _NOT_SERVING
        if status != self._status or self._is_over:
            self._status = status
            self._changed.set()
            self._changed = asyncio.Event()

    def end(self) -> None:
        """Reports not serving for good, and ends all watches."""
        self._is_over = True
        self.update(is_serving=False)

    async def Check(self, request: pb.HealthCheckRequest, context: Any) -> pb.HealthCheckResponse:
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "this server has no such service")
        return pb.HealthCheckResponse(status=self._status)

    async def Watch(self, request: pb.HealthCheckRequest, context: Any) -> None:
        if self._watchers >= MAX_WATCHERS:
            raise RateLimited(f"{MAX_WATCHERS} watches are open")
        is_known = request.service in self._names
        self._watchers += 1
        try:
            sent = None
            while True:
                changed, is_last = self._changed, self._is_over
                status = self._status if is_known else _UNKNOWN
                if status != sent:
                    await context.write(pb.HealthCheckResponse(status=status))
                    sent = status
                if is_last:
                    return
                await changed.wait()
        finally:
            self._watchers -= 1
