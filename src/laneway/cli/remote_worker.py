"""`laneway remote-worker`"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from laneway.cli import inputs
from laneway.cli.worker import log_form


def remote_worker(
    app: Annotated[str, typer.Argument(metavar="APP", help="Where the handlers are: module:name.")],
    server: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            envvar="LANEWAY_GRPC_SERVER",
            help="A server that was started with --grpc; several, with commas, are tried in turn.",
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="LANEWAY_TOKEN",
            help="Of a principal that may claim. Prefer the variable, or LANEWAY_TOKEN_FILE: "
            "others can read arguments.",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            envvar="LANEWAY_TOKEN_FILE",
            help="A file that holds the token; read again when the worker connects anew.",
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
            help="Without TLS to another machine too: others can read the token and the jobs.",
        ),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="LANEWAY_WORKER_PROCESSES",
            help="Worker processes to run, under a supervisor that restarts them.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, envvar="LANEWAY_CONCURRENCY", help="Async jobs a process runs at once."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, envvar="LANEWAY_THREADS", help="Threads for plain handlers."),
    ] = None,
    children: Annotated[
        int | None,
        typer.Option(min=0, envvar="LANEWAY_CHILDREN", help="Children for isolated handlers."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", envvar="LANEWAY_WORKER_NAME", help="For people; by default host:pid."
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            envvar="LANEWAY_SHUTDOWN_GRACE",
            help="Time for jobs to finish when stopping.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            envvar="LANEWAY_METRICS_PORT",
            help="Tell Prometheus the metrics of this process there; each process takes the next.",
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            metavar="text|json",
            parser=log_form,
            envvar="LANEWAY_LOG_FORMAT",
            help="How log lines are written.",
        ),
    ] = None,
) -> None:
    """Run jobs of a server with the handlers of APP, without a database, until stopped."""
    from laneway.remote import make_link, run_remote_worker

    if log_format is not None:
        # A setting of the whole process tree, which reads it from its environment.
        os.environ["LANEWAY_LOG_FORMAT"] = log_format
    if token is not None:
        # For processes under a supervisor: others can read arguments.
        os.environ["LANEWAY_TOKEN"] = token
    link = make_link(
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
        link,
        options=options,
        processes=processes,
        concurrency=concurrency,
        threads=threads,
        children=children,
        name=name,
        grace=grace,
        metrics_port=metrics_port,
    )
    raise typer.Exit(code)
