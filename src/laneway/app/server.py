"""Runs the server: HTTP, optionally gRPC for remote workers, and an application's worker."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from functools import partial
from importlib import import_module
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

from laneway import __version__
from laneway.app.browser import open_link
from laneway.app.laneway import Laneway, make_api
from laneway.app.loader import load_app
from laneway.app.memory import return_large_blocks
from laneway.app.open_database import resolve_dsn
from laneway.app.webhook_worker import WebhookService
from laneway.config.settings import Settings
from laneway.config.sources import database_source
from laneway.control import access, sessions
from laneway.domain.address import is_loopback
from laneway.domain.redaction import redact_dsn
from laneway.engine.leader.services import ServerLeadership
from laneway.engine.process.collector import collect_less_often
from laneway.engine.process.deadline import Deadline
from laneway.engine.process.lifecycle import TO_STOP, Signals, run_loop, stop_worker
from laneway.engine.process.logs import configure
from laneway.engine.process.start_retry import StartRetry
from laneway.engine.worker import Worker
from laneway.errors import ConfigError, DatabaseUnavailable, Refused
from laneway.extras import require
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import Database
from laneway.store.migrate import check

if TYPE_CHECKING:
    from fastapi import FastAPI

    from laneway.api.http.server import Serving
    from laneway.rpc.server.listener import RpcServer

log = SafeLogger("laneway")


def run_server(
    echo: Callable[[str], None],
    app: str | None = None,
    *,
    by: str,
    host: str | None = None,
    port: int | None = None,
    grpc: bool = False,
    grpc_host: str | None = None,
    grpc_port: int | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    behind_tls_proxy: bool = False,
    open_browser: bool = False,
) -> int:
    """Runs the server until a stop signal; with an application, also its worker.

    With `open_browser`, the login link of the first start opens in the user's browser.
    """
    from laneway.api.http.middleware import log_request_ids
    from laneway.api.http.server import check_tls, listen

    loaded = None if app is None else load_app(app)
    settings = Settings.load() if loaded is None else loaded.settings
    given: dict[str, object] = {
        "grpc": "on" if grpc else None,
        "grpc_host": grpc_host,
        "grpc_port": grpc_port,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "behind_tls_proxy": behind_tls_proxy or None,
    }
    settings = settings.model_copy(update={k: v for k, v in given.items() if v is not None})
    configure(settings)
    log_request_ids()
    host = settings.server_host if host is None else host
    port = settings.server_port if port is None else port
    served = {"server_host": host}
    if settings.grpc == "on":
        # Before anything is created.
        check_rpc_packages()
        served["grpc_host"] = settings.grpc_host
    for name, address in served.items():
        if settings.conninfo is None and not is_loopback(address):
            raise ConfigError(
                f"{name}: embedded PostgreSQL is for development and not served on {address}:"
                " set LANEWAY_DATABASE_URL"
            )
    check_tls(settings, host)
    return_large_blocks()
    bound = listen(host, port)
    with bound:
        dsn = resolve_dsn(settings) if loaded is None else loaded.database.dsn
        _check_when_reachable(dsn, database_source(settings.conninfo))
        worker = None
        if loaded is not None:
            is_off = settings.worker == "off"
            worker = Worker(dsn, settings, loaded.handlers, app=app, is_off=is_off)
        show_link = partial(print_link, echo, open_browser=open_browser)
        serving = _serve(
            echo, dsn, settings, bound, by=by, client=loaded, worker=worker, show_link=show_link
        )
        return run_loop(serving)


def print_link(echo: Callable[[str], None], url: str, link: str, *, open_browser: bool) -> None:
    """Print the login link of the first start; the one place that shows its secret."""
    address = f"{url}/login?link={link}"
    echo(f"log in within ten minutes, once: {address}")
    if open_browser:
        open_link(address)


def _check_when_reachable(dsn: str, source: str) -> None:
    """Check schema and rights; wait for a database that is away, as a worker does."""
    retry = StartRetry(f"is {source} right, and does PostgreSQL run there?")
    while True:
        try:
            return check(dsn, __version__, role="server")
        except DatabaseUnavailable as error:
            time.sleep(retry.pause_s(error))


async def _serve(
    echo: Callable[[str], None],
    dsn: str,
    settings: Settings,
    bound: socket,
    *,
    by: str,
    client: Laneway | None,
    worker: Worker | None,
    show_link: Callable[[str, str], None],
) -> int:
    from laneway.api.http.server import Serving, url_of

    deadline = Deadline()
    signals = Signals(deadline, settings.shutdown_grace)
    keeping = asyncio.ensure_future(signals.keep())
    app = make_api(dsn, settings, client)
    database: Database = app.state.database
    rpc = leadership = deliveries = None
    try:
        serving = Serving(app, bound, settings.shutdown_grace)
        signals.handle(TO_STOP, serving.on_signal)
        # Long-lived objects: collecting them again and again takes a tenth of a busy server's time.
        gc.collect()
        gc.freeze()
        collect_less_often()
        url = url_of(bound, tls=serving.tls)
        if is_loopback(bound.getsockname()[0]):
            link = await sessions.bootstrap(database, by)
            if link is not None:
                show_link(url, link)
        elif not await access.list_principals(database, limit=1):
            raise Refused(
                "no principal exists, so no login is possible: start the server once on 127.0.0.1,"
                " or run `laneway principals create`, before you serve other addresses"
            )
        if settings.grpc == "on":
            rpc = make_rpc(dsn, settings, app)
            where = rpc.listen(settings.grpc_host, settings.grpc_port)
            await rpc.start()
            echo(f"serving remote workers on {where}")
        if settings.server_leads and rpc is None and (worker is None or settings.worker == "off"):
            # The gRPC server and a worker take part in leadership themselves.
            leadership = ServerLeadership(dsn, settings)
            await leadership.start()
        if worker is None or settings.worker == "off":
            # A worker delivers itself.
            deliveries = WebhookService(dsn, settings, database)
            deliveries.start()
        log.info(
            "server listens on %s: laneway %s, database %s",
            url, __version__, redact_dsn(dsn) or "of the PG variables",
        )  # fmt: skip
        echo(f"serving {url} (create an API token: laneway tokens create PRINCIPAL --name NAME)")
        if worker is not None:
            await worker.start()
        stopping = _stop_on_signal(serving, settings, worker, rpc, deliveries)
        await asyncio.gather(serving.run(), stopping)
    except BaseException:
        signals.restore()
        raise
    else:
        signals.ignore()
    finally:
        keeping.cancel()
        if leadership is not None:
            await leadership.stop()
        if rpc is not None:
            await rpc.stop(0)
        if deliveries is not None:
            await deliveries.close(0)
        if client is not None:
            await client.close()
        await database.close()
    log.info("server stopped")
    deadline.leave(0)
    return 0


async def _stop_on_signal(
    serving: Serving,
    settings: Settings,
    worker: Worker | None,
    rpc: RpcServer | None,
    deliveries: WebhookService | None,
) -> None:
    await serving.stopping.wait()
    stops: list[Coroutine[Any, Any, object]] = []
    if worker is not None:
        stops.append(stop_worker(worker, None, serving.forced))
    if rpc is not None:
        stops.append(rpc.stop(settings.shutdown_grace, serving.forced))
    if deliveries is not None:
        stops.append(deliveries.close(settings.shutdown_grace, serving.forced))
    await asyncio.gather(*stops)


def check_rpc_packages() -> None:
    """Raises MissingExtra if the packages that serve remote workers are not installed."""
    require("grpc", "serving remote workers")
    import_module("laneway.rpc.server.listener")


def make_rpc(dsn: str, settings: Settings, app: FastAPI) -> RpcServer:
    """The gRPC server, with the API's credential cache and throttle."""
    check_rpc_packages()
    from laneway.rpc.server.dispatch_server import DispatchServer
    from laneway.rpc.server.listener import RpcServer

    dispatch = DispatchServer(dsn, settings)
    state = app.state
    return RpcServer(dispatch, state.database, settings, state.credentials, state.throttle)
