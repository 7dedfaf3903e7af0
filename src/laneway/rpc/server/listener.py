"""The gRPC server: where it listens, how much it takes, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import ClassVar, Final

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from laneway.config.settings import Settings
from laneway.control.credential_cache import CredentialCache
from laneway.control.throttle import Throttle
from laneway.domain.address import is_loopback
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service as Loop
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.rpc.server.auth import Authenticator
from laneway.rpc.server.certificate import Certificate
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.error_interceptor import ErrorInterceptor
from laneway.rpc.server.health import RpcHealth
from laneway.rpc.server.service import WorkerCalls, add_to
from laneway.store.database import Database

log = logging.getLogger("laneway")

NAME: Final = "laneway.v1.DispatchService"
# A revoked token loses its streams within five seconds; and so long an outage may go unnoticed.
REVIEW_S: Final = 2.0
# On one connection; a worker needs two or three, but many in one process share theirs.
MOST_STREAMS: Final = 1000
METADATA_BYTES: Final = 16 * 1024
# A peer that is gone without a word is noticed after the sum of these.
PING_S: Final = 10
PONG_S: Final = 5
# In place of the latter for a process that was stopped: its kernel still takes what is sent. gRPC
# would give it a minute.
STOPPED_S: Final = 10
# How often a worker may ask whether we are there.
LEAST_PING_S: Final = 5
# A connection on which nobody says who he is, or nothing at all, is closed after so long.
HANDSHAKE_S: Final = 10
IDLE_S: Final = 300
# After its stream has ended a worker has so long to say here what it has to say.
LINGER_S: Final = 1.0


class RpcServer:
    """Serves remote workers between `start` and `stop`."""

    def __init__(
        self,
        replica: DispatchServer,
        database: Database,
        settings: Settings,
        gatekeeper: CredentialCache,
        throttle: Throttle,
    ) -> None:
        self._settings = settings
        self._replica = replica
        self.door = Authenticator(database, settings, gatekeeper, throttle)
        self._service: WorkerCalls | None = None
        self._health = RpcHealth(NAME)
        self._complaints = ThrottledWarnings()
        self._reviewing = Reviewing(self.door, self._health, self._complaints)
        self._server = grpc.aio.server(
            interceptors=(ErrorInterceptor(),), options=_options(settings)
        )
        add_HealthServicer_to_server(self._health, self._server)
        self._is_stopping = False

    def listen(self, host: str, port: int) -> str:
        """Takes an address; answers it as workers name it."""
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        certificate = Certificate.of(self._settings, self._complaints)
        if certificate is None and not is_loopback(host):
            raise ConfigError(
                f"grpc_host: {host} is reached by others: set grpc_cert and grpc_key"
                " (tokens do not travel as plain text)"
            )
        try:
            if certificate is None:
                bound = self._server.add_insecure_port(where)
            else:
                bound = self._server.add_secure_port(where, certificate.credentials())
        except RuntimeError:
            bound = 0
        if not bound:
            why = _why_not(host, port)
            raise ConfigError(f"grpc_host, grpc_port: cannot listen on {where}: {why}")
        return f"{where.rpartition(':')[0]}:{bound}"

    async def start(self) -> None:
        await self._replica.start()
        self._service = WorkerCalls(self._replica, self.door, self._settings)
        add_to(self._server, self._service)
        await self._server.start()
        self._health.tell(is_there=True)
        self._reviewing.start()

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Ends the streams, and answers for a while what their workers have to say."""
        if self._service is None or self._is_stopping:
            return
        self._is_stopping = True
        await self._reviewing.cancel()
        self._health.end()
        had_workers = self.door.count > 0
        await self._replica.stop_claiming()
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
            await self._replica.stop()


class Reviewing(Loop):
    """Looks now and then whether the database is there, and which open streams it still allows."""

    name: ClassVar[str] = "grpc"

    def __init__(
        self, door: Authenticator, health: RpcHealth, complaints: ThrottledWarnings
    ) -> None:
        super().__init__(complaints)
        self._door = door
        self._health = health

    async def run_once(self) -> float | None:
        try:
            await self._door.review()
        except DatabaseUnavailable:
            self._health.tell(is_there=False)
            raise
        self._health.tell(is_there=True)
        return REVIEW_S


def _why_not(host: str, port: int) -> str:
    """Why an address cannot be taken, which gRPC does not tell."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return "it was taken a moment ago"


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.grpc_message_bytes),
        ("grpc.max_send_message_length", settings.grpc_assignment_bytes),
        ("grpc.max_concurrent_streams", MOST_STREAMS),
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
        # A port that is taken is an error, not shared.
        ("grpc.so_reuseport", 0),
    ]
