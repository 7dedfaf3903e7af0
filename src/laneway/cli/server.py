"""`laneway server` and `laneway up`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import session
from laneway.cli.output import line

Host = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        envvar="LANEWAY_SERVER_HOST",
        help="Where to listen; by default only this machine reaches it.",
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
        " certificate chain and its key (PEM); without them any address but one of this machine"
        " itself (loopback) is refused.",
    ),
]
GrpcHost = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        envvar="LANEWAY_GRPC_HOST",
        help="Where they find it; 127.0.0.1 by default.",
    ),
]
GrpcPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, envvar="LANEWAY_GRPC_PORT", help="8421 by default."),
]


def server(
    host: Host = None,
    port: Port = None,
    grpc: Grpc = False,
    grpc_host: GrpcHost = None,
    grpc_port: GrpcPort = None,
) -> None:
    """Serve the HTTP API until stopped by SIGTERM or Ctrl-C."""
    from laneway.serving import run_server

    raise typer.Exit(
        run_server(
            line,
            by=session.principal(),
            host=host,
            port=port,
            grpc=grpc,
            grpc_host=grpc_host,
            grpc_port=grpc_port,
        )
    )


def up(
    app: Annotated[str, typer.Argument(metavar="APP", help="Where the handlers are: module:name.")],
    host: Host = None,
    port: Port = None,
    grpc: Grpc = False,
    grpc_host: GrpcHost = None,
    grpc_port: GrpcPort = None,
) -> None:
    """Serve the HTTP API and run jobs with the handlers of APP, in one process."""
    from laneway.serving import run_server

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
        )
    )
