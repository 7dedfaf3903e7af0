"""Builds workers without a database: an application's handlers, and a server's endpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from laneway.app.loader import load_app
from laneway.app.worker_process import WorkerOptions, run_processes
from laneway.config.settings import Settings
from laneway.extras import require

if TYPE_CHECKING:
    from laneway.rpc.worker.endpoint import Endpoint


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
    require("grpc", "a remote worker")
    from laneway.rpc.worker.endpoint import Endpoint

    return Endpoint.to(server, token, token_file=token_file, tls_ca=tls_ca, plaintext=plaintext)


def run_remote_worker(
    app: str, endpoint: Endpoint, *, options: list[str], **given: Unpack[WorkerOptions]
) -> int:
    """Runs remote workers of an application until a stop signal.

    `options` are the command-line options that give a supervised process the same endpoint.
    """
    from laneway.rpc.worker.worker import RemoteWorker

    # Handlers that submit, and their children, must not start embedded PostgreSQL.
    os.environ.setdefault("LANEWAY_EMBEDDED", "off")
    loaded = load_app(app)

    def make(settings: Settings, dsn: str) -> RemoteWorker:
        return RemoteWorker(
            loaded.handlers,
            settings,
            endpoint,
            name=given.get("name"),
            app=app,
            max_jobs=given.get("max_jobs"),
        )

    return run_processes(loaded.settings, make, ["remote-worker", app, *options], given)
