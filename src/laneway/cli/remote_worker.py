"""`laneway remote-worker`"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from laneway.cli.worker_options import (
    App,
    Children,
    Concurrency,
    Grace,
    LogFormat,
    LogLevel,
    MaxJobs,
    MaxJobsPerChild,
    MetricsPort,
    Name,
    Processes,
    Quiet,
    Slots,
    Threads,
    set_logging,
)


def remote_worker(
    app: App,
    server: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            envvar="LANEWAY_GRPC_SERVER",
            help="A server started with --grpc; several, separated by commas, are tried in turn.",
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="LANEWAY_TOKEN",
            help="Token of a principal that may claim. Prefer the variable or LANEWAY_TOKEN_FILE: "
            "others can read arguments.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="LANEWAY_TOKEN_FILE",
            help="A file with the token; read again at each connection.",
        ),
    ] = None,
    tls_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="LANEWAY_GRPC_CA",
            help="Certificates to trust (PEM) instead of the system's.",
        ),
    ] = None,
    plaintext: Annotated[
        bool,
        typer.Option(
            "--plaintext",
            envvar="LANEWAY_GRPC_PLAINTEXT",
            help="Skip TLS even to another host: others can read the token and the jobs.",
        ),
    ] = False,
    processes: Processes = None,
    concurrency: Concurrency = None,
    threads: Threads = None,
    children: Children = None,
    slots: Slots = None,
    max_jobs: MaxJobs = None,
    max_jobs_per_child: MaxJobsPerChild = None,
    name: Name = None,
    grace: Grace = None,
    metrics_port: MetricsPort = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    quiet: Quiet = False,
) -> None:
    """Run jobs of a server with the handlers of APP, without database access, until stopped."""
    from laneway.app.remote_worker import make_endpoint, run_remote_worker

    set_logging(log_format, log_level, quiet=quiet)
    if token is not None:
        # Supervised processes inherit it; arguments would be readable by others.
        os.environ["LANEWAY_TOKEN"] = token
    endpoint = make_endpoint(
        server, token or None, token_file=token_file, tls_ca=tls_ca, plaintext=plaintext
    )
    options = [
        f"--server={server}",
        *([] if token_file is None else [f"--token-file={token_file}"]),
        *([] if tls_ca is None else [f"--tls-ca={tls_ca}"]),
        *(["--plaintext"] if plaintext else []),
    ]
    code = run_remote_worker(
        app,
        endpoint,
        options=options,
        processes=processes,
        concurrency=concurrency,
        threads=threads,
        children=children,
        slots=slots,
        max_jobs=max_jobs,
        max_jobs_per_child=max_jobs_per_child,
        name=name,
        grace=grace,
        metrics_port=metrics_port,
    )
    raise typer.Exit(code)
