"""`laneway server` and `laneway up`"""

from __future__ import annotations

from typing import Any

import typer

from laneway.cli import connection
from laneway.cli.output import line
from laneway.cli.process_options import (
    App,
    Open,
    takes_server_and_worker_options,
    takes_server_options,
)


@takes_server_options
def server(options: dict[str, Any], open_browser: Open = True) -> None:
    """Serve the HTTP API until stopped by SIGTERM, SIGHUP or Ctrl-C."""
    from laneway.app.server import run_server

    by = connection.principal()
    raise typer.Exit(run_server(line, by=by, open_browser=open_browser, **options))


@takes_server_and_worker_options
def up(app: App, options: dict[str, Any], open_browser: Open = True) -> None:
    """Serve the HTTP API and run jobs with the handlers of APP, in one process."""
    from laneway.app.server import run_server

    by = connection.principal()
    raise typer.Exit(run_server(line, app, by=by, open_browser=open_browser, **options))
