"""Builds workers without a database: an application's handlers, and a server's endpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from laneway.app.laneway import Laneway, load_app, metrics_of, size_options
from laneway.engine.process.health import WorkerHealth
from laneway.engine.process.lifecycle import run_worker_process
from laneway.engine.process.logs import configure
from laneway.engine.process.supervisor import Supervisor, command
from laneway.errors import ConfigError

if TYPE_CHECKING:
    from laneway.rpc.worker.endpoint import Endpoint
    from laneway.rpc.worker.worker import RemoteWorker


def make_endpoint(
    server: str,
    token: str | None = None,
    *,
    token_file: str | None = None,
    tls_ca: str | None = None,
    plaintext: bool = False,
) -> Endpoint:
    """The address and credentials of a server: `server` is host:port, or several with commas.

    Plain text is allowed only to this machine, unless `plaintext` is set.
    """
    try:
        from laneway.rpc.worker.endpoint import Endpoint
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("grpc", "google"):
            raise
        raise ConfigError("remote workers need gRPC: pip install 'laneway[grpc]'") from error
    return Endpoint.to(server, token, token_file=token_file, tls_ca=tls_ca, plaintext=plaintext)


def remote_worker(
    app: Laneway, endpoint: Endpoint, *, name: str | None = None, reference: str | None = None
) -> RemoteWorker:
    """A worker of the application in this process; `start` it, later `stop` it.

    `reference` (module:name) lets child processes import the application.
    """
    from laneway.rpc.worker.worker import RemoteWorker

    return RemoteWorker(app.handlers, app.settings, endpoint, name=name, app=reference)


def run_remote_worker(
    app: str,
    endpoint: Endpoint,
    *,
    options: list[str],
    processes: int | None = None,
    concurrency: int | None = None,
    threads: int | None = None,
    children: int | None = None,
    slots: int | None = None,
    max_jobs: int | None = None,
    max_jobs_per_child: int | None = None,
    name: str | None = None,
    grace: float | None = None,
    metrics_port: int | None = None,
) -> int:
    """Runs remote workers of an application until a stop signal.

    `options` are the command-line options that give a supervised process the same endpoint.
    """
    from laneway.rpc.worker.worker import RemoteWorker

    # Handlers that submit, and their children, must not start embedded PostgreSQL.
    os.environ.setdefault("LANEWAY_EMBEDDED", "off")
    loaded = load_app(app)
    sizes = {
        "concurrency": concurrency,
        "threads": threads,
        "children": children,
        "slots": slots,
        "max_jobs_per_child": max_jobs_per_child,
    }
    given = {**sizes, "metrics_port": metrics_port}
    settings = loaded.settings.model_copy(update={k: v for k, v in given.items() if v is not None})
    configure(settings)
    is_supervised = "LANEWAY_SUPERVISOR_FDS" in os.environ
    if settings.metrics_port is not None:
        from laneway.observability.metrics_endpoint import check_host

        check_host(settings)
    if processes is None or is_supervised:
        health = WorkerHealth(settings)
        with metrics_of(settings, health, is_supervised=is_supervised):
            return run_worker_process(
                lambda: RemoteWorker(
                    loaded.handlers, settings, endpoint, name=name, app=app, max_jobs=max_jobs
                ),
                grace,
                health,
            )
    options = [
        *options,
        *size_options({**sizes, "max_jobs": max_jobs}),
        *([] if grace is None else [f"--grace={grace}"]),
    ]
    started = command(app, options, "remote-worker")
    return Supervisor(started, processes, None, settings, grace, name).run()
