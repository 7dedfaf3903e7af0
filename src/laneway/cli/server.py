"""`laneway server` and `laneway up`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laneway.cli import session
from laneway.cli.output import line
from laneway.cli.worker_options import App, LogFormat, LogLevel, Open, Quiet, set_logging

Host = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        envvar="LANEWAY_SERVER_HOST",
        help="Address to listen on; loopback by default.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(min=0, max=65535, envvar="LANEWAY_SERVER_PORT", help="8420 by default."),
]
Grpc = Annotated[
    bool,
    typer.Option(
        "--grpc",
        envvar="LANEWAY_GRPC",
        help="Serve remote workers too. LANEWAY_GRPC_CERT and LANEWAY_GRPC_KEY name the files of a"
        " certificate chain and its key (PEM). Without them only loopback addresses are"
        " accepted.",
    ),
]
GrpcHost = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        envvar="LANEWAY_GRPC_HOST",
        help="Address for remote workers; 127.0.0.1 by default.",
    ),
]
GrpcPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, envvar="LANEWAY_GRPC_PORT", help="8421 by default."),
]


TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        envvar="LANEWAY_TLS_CERT",
        help="Certificate chain (PEM); off loopback, this or --behind-tls-proxy is required.",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        metavar="FILE",
        envvar="LANEWAY_TLS_KEY",
        help="Private key of the certificate.",
    ),
]
BehindProxy = Annotated[
    bool,
    typer.Option(
        "--behind-tls-proxy",
        envvar="LANEWAY_BEHIND_TLS_PROXY",
        help="A proxy terminates TLS: serve plain HTTP off loopback. LANEWAY_TRUSTED_PROXIES names"
        " the addresses whose X-Forwarded-For and -Proto are trusted.",
    ),
]


def server(
    host: Host = None,
    port: Port = None,
    grpc: Grpc = False,
    grpc_host: GrpcHost = None,
    grpc_port: GrpcPort = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_tls_proxy: BehindProxy = False,
    open_browser: Open = True,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Serve the HTTP API until stopped by SIGTERM, SIGHUP or Ctrl-C."""
    from laneway.app.server import run_server

    set_logging(log_format, log_level, quiet=False)
    raise typer.Exit(
        run_server(
            line,
            by=session.principal(),
            host=host,
            port=port,
            grpc=grpc,
            grpc_host=grpc_host,
            grpc_port=grpc_port,
            tls_cert=tls_cert,
            tls_key=tls_key,
            behind_tls_proxy=behind_tls_proxy,
            open_browser=open_browser,
        )
    )


def up(
    app: App,
    host: Host = None,
    port: Port = None,
    grpc: Grpc = False,
    grpc_host: GrpcHost = None,
    grpc_port: GrpcPort = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_tls_proxy: BehindProxy = False,
    open_browser: Open = True,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
    quiet: Quiet = False,
) -> None:
    """Serve the HTTP API and run jobs with the handlers of APP, in one process."""
    from laneway.app.server import run_server

    set_logging(log_format, log_level, quiet=quiet)
    raise typer.Exit(
        run_server(
            line,
            app,
            by=session.principal(),
            host=host,
            port=port,
            grpc=grpc,
            grpc_host=grpc_host,
            grpc_port=grpc_port,
            tls_cert=tls_cert,
            tls_key=tls_key,
            behind_tls_proxy=behind_tls_proxy,
            open_browser=open_browser,
        )
    )
