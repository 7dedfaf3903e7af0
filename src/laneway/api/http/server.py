"""Serves the application on a socket until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from laneway.api.http.connections import Connections
from laneway.api.http.protocol import Protocol
from laneway.api.http.tls import TlsServer
from laneway.config.settings import Settings
from laneway.domain.address import is_loopback
from laneway.errors import ConfigError

_BACKLOG: Final = 2048
# How long a client may leave sent data unread, while serving and while stopping.
_UNREAD_MS: Final = 30_000
_UNREAD_S: Final = 4.0
# Long enough for slow phones.
HANDSHAKE_S: Final = 10.0
# Longer than load balancers keep idle connections (60 s): if the server closed one first, a request
# that is on its way would be lost.
IDLE_S: Final = 75


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or ConfigError with one line that names the address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = (
                "the port is in use: use another one with --port N (LANEWAY_SERVER_PORT), or any"
                " free one with --port 0"
            )
        raise ConfigError(
            f"server_host, server_port: cannot listen on {host}:{port}: {reason}"
        ) from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # The kernel closes connections whose client does not read.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    return bound


def url_of(bound: socket.socket, *, tls: bool = False) -> str:
    """The URL for browsers."""
    host, port = bound.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def check_tls(settings: Settings, host: str) -> None:
    """Refuse to serve other machines without TLS, unless a proxy terminates it."""
    if (settings.tls_cert is None) is not (settings.tls_key is None):
        raise ConfigError("tls_cert, tls_key: set both or neither")
    for name, path in (("tls_cert", settings.tls_cert), ("tls_key", settings.tls_key)):
        if path is not None and not os.access(path, os.R_OK):
            raise ConfigError(f"{name}: the file {path} cannot be read")
    if settings.tls_cert is None and not is_loopback(host) and not settings.behind_tls_proxy:
        raise ConfigError(
            f"server_host: tokens would cross the network to {host} as plain text: set --tls-cert"
            " and --tls-key, or --behind-tls-proxy if a proxy terminates TLS"
        )


def _is_relevant(record: logging.LogRecord) -> bool:
    """Filter out uvicorn's error about streams that Laneway dropped as unread."""
    return "without completing response" not in record.getMessage()


def _bounded(settings: Settings) -> type[Protocol]:
    """The protocol class with the bounds of one server."""

    class Bounded(Protocol):
        slots = Connections(settings)
        body_s = settings.body_timeout

    return Bounded


class _OverTls:
    """The application behind a proxy that terminates TLS: browsers use https."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["scheme"] = "https"
        await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers: uvicorn's exit code would report a failure."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start like uvicorn, but with a slot and a deadline for each TLS handshake."""
        await self.lifespan.startup()
        config, state = self.config, self.server_state

        def make_protocol() -> Protocol:
            made: Protocol = config.http_protocol_class(  # type: ignore[call-arg, assignment]
                config=config, server_state=state, app_state=self.lifespan.state
            )
            return made

        loop = asyncio.get_running_loop()
        slots: Connections | None = getattr(config.http_protocol_class, "slots", None)
        self.servers = [
            await loop.create_server(make_protocol, sock=bound, backlog=config.backlog)
            if config.ssl is None or slots is None
            else TlsServer(bound, make_protocol, config.ssl, slots, HANDSHAKE_S)  # type: ignore[misc]
            for bound in sockets or ()
        ]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Serving:
    """A running server. The first `on_signal` sets `stopping`, the second one `forced`."""

    def __init__(self, app: FastAPI, bound: socket.socket, grace_s: float) -> None:
        self.stopping, self.forced = asyncio.Event(), asyncio.Event()
        self._app = app
        self._bound = bound
        uvicorn_log = logging.getLogger("uvicorn.error")
        uvicorn_log.addFilter(_is_relevant)
        if uvicorn_log.level == logging.NOTSET:
            # Its lines about start and stop repeat ours.
            uvicorn_log.setLevel(logging.WARNING)
        settings: Settings = app.state.settings
        self.tls = settings.tls_cert is not None
        self._server = _Server(
            uvicorn.Config(
                _OverTls(app) if settings.behind_tls_proxy else app,
                http=_bounded(settings),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_keep_alive=IDLE_S,
                # Only trusted proxies may report the client's address.
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                timeout_graceful_shutdown=max(1, int(grace_s)),
            )
        )

    def on_signal(self) -> None:
        (self.forced if self.stopping.is_set() else self.stopping).set()

    async def run(self) -> None:
        """Serve until `stopping` is set; requests in progress have the grace period to end."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._bound]))
        waiting = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            # Streams never end by themselves.
            self._app.state.hub.end_streams()
            self._server.should_exit = True
            forced = asyncio.ensure_future(self.forced.wait())
            aborting = asyncio.ensure_future(self._abort_unread())
            await asyncio.wait({serving, forced}, return_when=asyncio.FIRST_COMPLETED)
            self._server.force_exit = not serving.done()
            forced.cancel()
            aborting.cancel()
            await serving
        finally:
            waiting.cancel()
            self.stopping.set()
            await self._app.state.close()

    async def _abort_unread(self) -> None:
        """Abort closing connections whose client does not read its response."""
        await asyncio.sleep(_UNREAD_S)
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None and transport.is_closing():
                transport.abort()
