"""The gRPC server: its address, its limits, and its start and stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import ClassVar, Final

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from laneway.config.settings import Settings
from laneway.control.credential_cache import CredentialCache
from laneway.control.throttle import Throttle
from laneway.domain.address import is_loopback
from laneway.engine.service import Service as Loop
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc.server.auth import Authenticator
from laneway.rpc.server.certificate import Certificate
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.error_interceptor import ErrorInterceptor
from laneway.rpc.server.health import RpcHealth
from laneway.rpc.server.service import WorkerCalls, add_to
from laneway.store.database import Database

NAME: Final = "laneway.v1.DispatchService"
# A revoked token loses its streams, and an outage is noticed, within five seconds.
REVIEW_S: Final = 2.0
# Per connection; a worker needs two or three, but the workers of one process share a connection.
MAX_STREAMS: Final = 1000
METADATA_BYTES: Final = 16 * 1024
# A lost peer is noticed after the sum of these.
PING_S: Final = 10
PONG_S: Final = 5
# Replaces PONG_S for a stopped process, whose kernel still accepts bytes; gRPC's default is a
# minute.
STOPPED_S: Final = 10
# The shortest interval of a worker's pings.
LEAST_PING_S: Final = 5
# A connection is closed after this long without a TLS handshake, or without calls.
HANDSHAKE_S: Final = 10
IDLE_S: Final = 300
# The time after the end of its stream in which a worker can still send results here.
LINGER_S: Final = 1.0


class RpcServer:
    """Serves remote workers between `start` and `stop`."""

    def __init__(
        self,
        dispatch: DispatchServer,
        database: Database,
        settings: Settings,
        credential_cache: CredentialCache,
        throttle: Throttle,
    ) -> None:
        self._settings = settings
        self._dispatch = dispatch
        self.authenticator = Authenticator(database, settings, credential_cache, throttle)
        self._service: WorkerCalls | None = None
        self._health = RpcHealth(NAME)
        self._warnings = LogThrottle()
        self._review = StreamReview(self.authenticator, self._health, self._warnings)
        self._server = grpc.aio.server(
            interceptors=(ErrorInterceptor(),), options=_options(settings)
        )
        add_HealthServicer_to_server(self._health, self._server)
        self._is_stopping = False

    def listen(self, host: str, port: int) -> str:
        """Binds an address; returns it with the actual port."""
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        certificate = Certificate.of(self._settings, self._warnings)
        if certificate is None and not is_loopback(host):
            raise ConfigError(
                f"grpc_host: {host} is not loopback: set grpc_cert and grpc_key"
                " (tokens must not be sent as plain text)"
            )
        try:
            if certificate is None:
                bound = self._server.add_insecure_port(where)
            else:
                bound = self._server.add_secure_port(where, certificate.credentials())
        except RuntimeError:
            bound = 0
        if not bound:
            reason = _bind_error(host, port)
            raise ConfigError(
                f"grpc_host, grpc_port: cannot listen on {where}: {reason}: use another port with"
                " --grpc-port N (LANEWAY_GRPC_PORT), or any free one with --grpc-port 0"
            )
        return f"{where.rpartition(':')[0]}:{bound}"

    async def start(self) -> None:
        await self._dispatch.start()
        self._service = WorkerCalls(self._dispatch, self.authenticator, self._settings)
        add_to(self._server, self._service)
        await self._server.start()
        self._health.update(is_serving=True)
        self._review.start()

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Ends the streams, and still serves calls of their workers for a while."""
        if self._service is None or self._is_stopping:
            return
        self._is_stopping = True
        await self._review.cancel()
        self._health.end()
        had_workers = self.authenticator.count > 0
        await self._dispatch.stop_claiming()
        if had_workers:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LINGER_S, grace_s)):
                    await (hurry or asyncio.Event()).wait()
        ending = asyncio.ensure_future(self._server.stop(grace_s))
        hurrying = asyncio.ensure_future((hurry or asyncio.Event()).wait())
        try:
            await asyncio.wait({ending, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await self._server.stop(0)
            await ending
        finally:
            hurrying.cancel()
            await self._service.close()
            await self._dispatch.stop()


class StreamReview(Loop):
    """Checks regularly that the database is reachable and that open streams are still allowed."""

    name: ClassVar[str] = "grpc"

    def __init__(
        self, authenticator: Authenticator, health: RpcHealth, warnings: LogThrottle
    ) -> None:
        super().__init__(warnings)
        self._authenticator = authenticator
        self._health = health

    async def run_once(self) -> float | None:
        try:
            await self._authenticator.review()
        except DatabaseUnavailable:
            self._health.update(is_serving=False)
            raise
        self._health.update(is_serving=True)
        return REVIEW_S


def _bind_error(host: str, port: int) -> str:
    """The reason why an address cannot be bound, which gRPC does not report."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return "the port was in use a moment ago: try again"


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.grpc_message_bytes),
        ("grpc.max_send_message_length", settings.grpc_assignment_bytes),
        ("grpc.max_concurrent_streams", MAX_STREAMS),
        ("grpc.max_metadata_size", METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.keepalive_time_ms", PING_S * 1000),
        ("grpc.keepalive_timeout_ms", PONG_S * 1000),
        ("grpc.http2.ping_timeout_ms", STOPPED_S * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", LEAST_PING_S * 1000),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
        ("grpc.max_connection_idle_ms", IDLE_S * 1000),
        # A port that is in use is an error, not shared.
        ("grpc.so_reuseport", 0),
    ]
