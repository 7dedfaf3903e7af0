"""`laneway worker`, `laneway demo` and `laneway bench`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from laneway.cli import inputs
from laneway.cli.exits import ExitCode, fail
from laneway.cli.output import line, may_color


def log_form(text: str) -> str:
    """text or json."""
    if text not in ("text", "json"):
        raise typer.BadParameter("must be text or json")
    return text


def worker(
    app: Annotated[str, typer.Argument(metavar="APP", help="Where the handlers are: module:name.")],
    lanes: Annotated[
        str | None,
        typer.Option(metavar="A,B", envvar="LANEWAY_WORKER_LANES", help="Serve only these lanes."),
    ] = None,
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
    """Run jobs with the handlers of APP until stopped by SIGTERM or Ctrl-C."""
    from laneway.wiring import run_worker

    if log_format is not None:
        # A setting of the whole process tree, which reads it from its environment.
        os.environ["LANEWAY_LOG_FORMAT"] = log_format
    code = run_worker(
        app,
        lanes=inputs.names(lanes) if lanes is not None else None,
        processes=processes,
        concurrency=concurrency,
        threads=threads,
        children=children,
        grace=grace,
        metrics_port=metrics_port,
    )
    raise typer.Exit(code)


def demo(
    once: Annotated[bool, typer.Option("--once", help="Run to the end, sum up and exit.")] = False,
) -> None:
    """See it work: embedded PostgreSQL, a worker and a sample workload."""
    from laneway.demo import run_demo

    raise typer.Exit(run_demo(once, color=may_color()))


def bench() -> None:
    """Say how to measure Laneway on this machine."""
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "Makefile").is_file() and (checkout / "bench").is_dir():
        line(f"make -C {checkout} bench")
        return
    raise fail(
        "the benchmarks are part of the source repository, not of the installed package: "
        "run `make bench` in a checkout of it",
        ExitCode.FAILED,
    )
