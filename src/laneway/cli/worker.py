"""`laneway worker` and `laneway demo`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laneway.cli import inputs
from laneway.cli.output import may_color
from laneway.cli.process_options import App, Open, takes_worker_options


@takes_worker_options
def worker(
    app: App,
    lanes: Annotated[
        str | None,
        typer.Option(metavar="A,B", envvar="LANEWAY_WORKER_LANES", help="Serve only these lanes."),
    ] = None,
    *,
    options: dict[str, Any],
) -> None:
    """Run jobs with the handlers of APP until stopped by SIGTERM, SIGHUP or Ctrl-C."""
    from laneway.app.worker_process import run_worker

    served = inputs.names(lanes) if lanes is not None else None
    raise typer.Exit(run_worker(app, lanes=served, **options))


def demo(
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Run to the end without the dashboard, print a summary and exit."
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of the dashboard; 8420 by default, or any that is free."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Choose the sample data; the same for the same number.")
    ] = 1,
    open_browser: Open = True,
) -> None:
    """Run a demo: embedded PostgreSQL, workers, sample jobs and the dashboard."""
    from laneway.demo import run_demo

    color = may_color()
    code = run_demo(once, color=color, seed=seed, port=port, open_browser=open_browser)
    raise typer.Exit(code)
