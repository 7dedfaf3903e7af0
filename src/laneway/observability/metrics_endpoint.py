"""Where a worker process serves its metrics, and what is routed beside them."""

from __future__ import annotations

import logging
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

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from laneway.config.settings import Settings

log = logging.getLogger("laneway")

# Makes of a program that serves metrics one that serves more.
Route = Callable[["WSGIApplication"], "WSGIApplication"]


def _guarded(told: WSGIApplication, token: str) -> WSGIApplication:
    """The same, for those who bear the token."""
    wanted = f"Bearer {token}".encode()

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1")
        if compare_digest(given, wanted):
            return told(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer")])
        return [b""]

    return app


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Requests are not logged."""


def _listen(port: int, host: str, app: WSGIApplication) -> WSGIServer:
    """Not prometheus_client's own server: it answers before it has been given this application."""
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
    tally: Counters = PROCESS,
    *,
    token: str | None = None,
    route: Route = lambda told: told,
) -> Iterator[int]:
    """Serves the metrics of a worker process from a thread: handlers that block do not stop it.

    With a `token` only to those who bear it; `route` may serve more. Answers the port, which is
    another than asked for if that is 0.
    """

    def made() -> Iterable[Metric]:
        return (*of_worker(tally), *of_process(tally))

    told = make_wsgi_app(MetricsSnapshot(made))
    try:
        server = _listen(port, host, route(told if token is None else _guarded(told, token)))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"metrics_host, metrics_port: cannot listen on {host}:{port}: {why}"
        ) from None
    thread = Thread(target=server.serve_forever, name="laneway metrics", daemon=True)
    thread.start()
    tally.is_read = True
    kept = forks.Fds(server.fileno())
    try:
        bound = server.server_address[1]
        log.info("metrics at http://%s:%s/metrics", host, bound)
        yield int(bound)
    finally:
        server.shutdown()
        kept.let_go()
        server.server_close()
        thread.join()


def check_host(settings: Settings) -> None:
    """Refuse to serve metrics without a token on an address other than loopback.

    Also refuse a token that no request can carry.
    """
    token = settings.metrics_token
    if token is not None and not re.fullmatch(r"[!-~]+", token.get_secret_value()):
        raise ConfigError("metrics_token: must be visible ASCII characters without blanks")
    if token is None and not is_loopback(settings.metrics_host):
        raise ConfigError(
            f"metrics_host: on {settings.metrics_host} metrics are shown to those"
            " with a token only: set LANEWAY_METRICS_TOKEN"
        )


@contextmanager
def of_settings(
    settings: Settings, port: int, *, must_listen: bool, route: Route = lambda told: told
) -> Iterator[None]:
    """Serves them as the settings say; a port that is taken is only logged unless it must."""
    check_host(settings)
    token = settings.metrics_token
    secret = None if token is None else token.get_secret_value()
    with ExitStack() as stack:
        try:
            stack.enter_context(served(port, settings.metrics_host, token=secret, route=route))
        except ConfigError as error:
            if must_listen:
                raise
            log.error("%s: this process goes on without telling its metrics", error)
        yield
