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


def server(host: Host = None, port: Port = None) -> None:
    """Serve the HTTP API until stopped by SIGTERM or Ctrl-C."""
    from laneway.wiring import run_server

    raise typer.Exit(run_server(line, by=session.principal(), host=host, port=port))


def up(
    app: Annotated[str, typer.Argument(metavar="APP", help="Where the handlers are: module:name.")],
    host: Host = None,
    port: Port = None,
) -> None:
    """Serve the HTTP API and run jobs with the handlers of APP, in one process."""
    from laneway.wiring import run_server

    raise typer.Exit(run_server(line, app, by=session.principal(), host=host, port=port))
