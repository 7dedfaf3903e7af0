"""Serves the metrics of a worker process, and the routes added to them."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from secrets import compare_digest
from threading import Thread
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.core import Metric
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from laneway import forks
from laneway.domain.address import is_loopback
from laneway.errors import ConfigError
from laneway.observability.counters import PROCESS, Counters
from laneway.observability.metrics import MetricsSnapshot, of_process, of_worker
from laneway.observability.safe_logger import SafeLogger

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from laneway.config.settings import Settings

log = SafeLogger("laneway")

# Adds routes to the WSGI application that serves metrics.
Route = Callable[["WSGIApplication"], "WSGIApplication"]


def _with_token(metrics: WSGIApplication, token: str) -> WSGIApplication:
    """The application behind a bearer token."""
    wanted = f"Bearer {token}".encode()

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1")
        if compare_digest(given, wanted):
            return metrics(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer")])
        return [b""]

    return app


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - inherited
        """Logs nothing."""


def _listen(port: int, host: str, app: WSGIApplication) -> WSGIServer:
    # prometheus_client's server answers before it has this application.
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]

    class Server(ThreadingWSGIServer):
        address_family = family

    return make_server(str(address[0]), port, app, Server, handler_class=_Quiet)


@contextmanager
def served(
    port: int,
    host: str,
    counters: Counters = PROCESS,
    *,
    token: str | None = None,
    route: Route = lambda app: app,
) -> Iterator[int]:
    """Serves the metrics of a worker process from a thread, which blocking handlers do not stop.

    With a `token` requests must bear it; `route` adds routes. Yields the port, which matters if
    `port` is 0.
    """

    def collect() -> Iterable[Metric]:
        return (*of_worker(counters), *of_process(counters))

    app = make_wsgi_app(MetricsSnapshot(collect))
    try:
        server = _listen(port, host, route(app if token is None else _with_token(app, token)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"metrics_host, metrics_port: cannot listen on {host}:{port}: {reason}"
        ) from None
    thread = Thread(target=server.serve_forever, name="laneway metrics", daemon=True)
    thread.start()
    counters.is_read = True
    fds = forks.Fds(server.fileno())
    try:
        bound = server.server_address[1]
        log.info("metrics at http://%s:%s/metrics", host, bound)
        yield int(bound)
    finally:
        server.shutdown()
        fds.let_go()
        server.server_close()
        thread.join()


def check_host(settings: Settings) -> None:
    """Refuses to serve metrics without a token off loopback, and tokens no request can carry."""
    token = settings.metrics_token
    if token is not None and not re.fullmatch(r"[!-~]+", token.get_secret_value()):
        raise ConfigError("metrics_token: must be visible ASCII characters without spaces")
    if token is None and not is_loopback(settings.metrics_host):
        raise ConfigError(
            f"metrics_host: {settings.metrics_host} is not loopback: set LANEWAY_METRICS_TOKEN"
        )


@contextmanager
def of_settings(
    settings: Settings, port: int, *, must_listen: bool, route: Route = lambda app: app
) -> Iterator[None]:
    """Serves metrics as configured; logs a port that is taken unless `must_listen`."""
    check_host(settings)
    token = settings.metrics_token
    secret = None if token is None else token.get_secret_value()
    with ExitStack() as stack:
        try:
            stack.enter_context(served(port, settings.metrics_host, token=secret, route=route))
        except ConfigError as error:
            if must_listen:
                raise
            log.error("%s: this process continues without serving metrics", error)
        yield
