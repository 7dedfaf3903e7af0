"""Whether this replica can do anything for a worker, as load balancers ask it: without a token."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1.health_pb2_grpc import HealthServicer

from laneway.errors import RateLimited

MOST_WATCHERS: Final = 1000
_SERVING: Final = pb.HealthCheckResponse.SERVING
_NOT_SERVING: Final = pb.HealthCheckResponse.NOT_SERVING
_UNKNOWN: Final = pb.HealthCheckResponse.SERVICE_UNKNOWN


class RpcHealth(HealthServicer):  # type: ignore[misc]
    """Answers for the whole server and for the service named, which are well together.

    Unlike that of grpcio-health-checking: a watcher that leaves takes no other along, little of
    what a stranger says is kept, and who watches does not keep the server from stopping.
    """

    def __init__(self, service: str) -> None:
        self._names = ("", service)
        self._status = _NOT_SERVING
        self._news = asyncio.Event()
        self._is_over = False
        self._watchers = 0

    def tell(self, *, is_there: bool) -> None:
        status = _SERVING if is_there and not self._is_over else _NOT_SERVING
        if status != self._status or self._is_over:
            self._status = status
            self._news.set()
            self._news = asyncio.Event()

    def end(self) -> None:
        """From now on it is not there, and who watches hears that last."""
        self._is_over = True
        self.tell(is_there=False)

    async def Check(self, request: pb.HealthCheckRequest, context: Any) -> pb.HealthCheckResponse:
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service here")
        return pb.HealthCheckResponse(status=self._status)

    async def Watch(self, request: pb.HealthCheckRequest, context: Any) -> None:
        if self._watchers >= MOST_WATCHERS:
            raise RateLimited(f"{MOST_WATCHERS} are watching already")
        is_known = request.service in self._names
        self._watchers += 1
        try:
            said = None
            while True:
                news, is_last = self._news, self._is_over
                status = self._status if is_known else _UNKNOWN
                if status != said:
                    await context.write(pb.HealthCheckResponse(status=status))
                    said = status
                if is_last:
                    return
                await news.wait()
        finally:
            self._watchers -= 1
