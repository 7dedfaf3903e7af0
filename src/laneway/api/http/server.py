"""Serves the application on a socket until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
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
_UNREAD_MS: Final = 30_000
# When it stops, they have less.
_UNREAD_S: Final = 4.0
# Of slow phones too.
HANDSHAKE_S: Final = 10.0
# Longer than load balancers keep theirs (60 s): who closes first cuts off what the other sends.
IDLE_S: Final = 75


def listen(host: str, port: int) -> socket.socket:
    """A socket there; a port that is taken is said in one line."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"server_host, server_port: cannot listen on {host}:{port}: {error.strerror or error}"
        ) from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Whoever reads nothing of what was sent for so long is cut off by the kernel.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    return bound


def url_of(bound: socket.socket, *, tls: bool = False) -> str:
    """Where a browser finds it."""
    host, port = bound.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def check_tls(settings: Settings, host: str) -> None:
    """Refuse to serve secrets as plain text to other machines, unless a proxy ends TLS."""
    if (settings.tls_cert is None) is not (settings.tls_key is None):
        raise ConfigError("tls_cert, tls_key: give both or neither")
    for name, path in (("tls_cert", settings.tls_cert), ("tls_key", settings.tls_key)):
        if path is not None and not os.access(path, os.R_OK):
            raise ConfigError(f"{name}: the file {path} cannot be read")
    if settings.tls_cert is None and not is_loopback(host) and not settings.behind_tls_proxy:
        raise ConfigError(
            f"server_host: tokens would cross the network to {host} as plain text: give --tls-cert"
            " and --tls-key, or --behind-tls-proxy where a proxy ends TLS"
        )


def _is_news(record: logging.LogRecord) -> bool:
    """A reader of a stream who was dropped while he kept us waiting is none."""
    return "without completing response" not in record.getMessage()


def _bounded(settings: Settings) -> type[Protocol]:
    """The protocol with the bounds of one server."""

    class Bounded(Protocol):
        places = Connections(settings)
        body_s = settings.body_timeout

    return Bounded


class _OverTls:
    """The application as browsers reach it through a proxy that ends TLS."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["scheme"] = "https"
        await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves the signals to us: a program that stopped as it was told has not failed."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn starts, with a place and a deadline for each handshake of TLS."""
        await self.lifespan.startup()
        config, state = self.config, self.server_state

        def make_protocol() -> Protocol:
            made: Protocol = config.http_protocol_class(  # type: ignore[call-arg, assignment]
                config=config, server_state=state, app_state=self.lifespan.state
            )
            return made

        loop = asyncio.get_running_loop()
        places: Connections | None = getattr(config.http_protocol_class, "places", None)
        self.servers = [
            await loop.create_server(make_protocol, sock=one, backlog=config.backlog)
            if config.ssl is None or places is None
            else TlsServer(one, make_protocol, config.ssl, places, HANDSHAKE_S)  # type: ignore[misc]
            for one in sockets or ()
        ]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Serving:
    """A server between its start and its end; `on_signal` sets `told`, again `hurry`."""

    def __init__(self, app: FastAPI, bound: socket.socket, grace_s: float) -> None:
        self.told, self.hurry = asyncio.Event(), asyncio.Event()
        self._app = app
        self._bound = bound
        logging.getLogger("uvicorn.error").addFilter(_is_news)
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
                # Only what is trusted says for whom it asks.
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=list(settings.trusted_proxies),
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                timeout_graceful_shutdown=max(1, int(grace_s)),
            )
        )

    def on_signal(self) -> None:
        (self.hurry if self.told.is_set() else self.told).set()

    async def run(self) -> None:
        """Serves until told; requests under way are answered within the grace."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._bound]))
        waiting = asyncio.ensure_future(self.told.wait())
        try:
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            # Readers of streams would stay for as long as they are let.
            self._app.state.hub.end_streams()
            self._server.should_exit = True
            hurrying = asyncio.ensure_future(self.hurry.wait())
            cutting = asyncio.ensure_future(self._cut_off_the_deaf())
            await asyncio.wait({serving, hurrying}, return_when=asyncio.FIRST_COMPLETED)
            self._server.force_exit = not serving.done()
            hurrying.cancel()
            cutting.cancel()
            await serving
        finally:
            waiting.cancel()
            self.told.set()
            await self._app.state.close()

    async def _cut_off_the_deaf(self) -> None:
        """Lets connections go that were answered, but by whose readers nothing is read."""
        await asyncio.sleep(_UNREAD_S)
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None and transport.is_closing():
                transport.abort()
