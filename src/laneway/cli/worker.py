"""`laneway worker` and `laneway demo`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import inputs
from laneway.cli.output import may_color
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
    Open,
    Processes,
    Quiet,
    Slots,
    Threads,
    set_logging,
)


def worker(
    app: App,
    lanes: Annotated[
        str | None,
        typer.Option(metavar="A,B", envvar="LANEWAY_WORKER_LANES", help="Serve only these lanes."),
    ] = None,
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
    """Run jobs with the handlers of APP until stopped by SIGTERM, SIGHUP or Ctrl-C."""
    from laneway.app.worker_process import run_worker

    set_logging(log_format, log_level, quiet=quiet)
    code = run_worker(
        app,
        lanes=inputs.names(lanes) if lanes is not None else None,
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
