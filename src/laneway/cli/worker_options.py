"""What `laneway worker` and `laneway remote-worker` can both be told."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from laneway.cli import inputs


def log_form(text: str) -> str:
    """text or json."""
    if text not in ("text", "json"):
        raise typer.BadParameter("must be text or json")
    return text


def log_as(form: str | None) -> None:
    """Sets it for the whole process tree, which reads it from its environment."""
    if form is not None:
        os.environ["LANEWAY_LOG_FORMAT"] = form


App = Annotated[str, typer.Argument(metavar="APP", help="Where the handlers are: module:name.")]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar="LANEWAY_WORKER_PROCESSES",
        help="Worker processes to run, under a supervisor that restarts them.",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(min=1, envvar="LANEWAY_CONCURRENCY", help="Async jobs a process runs at once."),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, envvar="LANEWAY_THREADS", help="Threads for plain handlers."),
]
Children = Annotated[
    int | None,
    typer.Option(min=0, envvar="LANEWAY_CHILDREN", help="Children for isolated handlers."),
]
Slots = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar="LANEWAY_SLOTS",
        help="Jobs a process runs at once, of all kinds together; 1: one at a time.",
    ),
]
MaxJobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar="LANEWAY_MAX_JOBS",
        help="Exit after so many jobs; a supervisor then starts a new process.",
    ),
]
MaxJobsPerChild = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar="LANEWAY_MAX_JOBS_PER_CHILD",
        help="Replace a child of isolated handlers after so many jobs; 1: a fresh one per job.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="LANEWAY_WORKER_NAME",
        help="For people; by default host:pid. Several processes add -1, -2 ...",
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        parser=inputs.duration,
        envvar="LANEWAY_SHUTDOWN_GRACE",
        help="Time for jobs to finish when stopping.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        envvar="LANEWAY_METRICS_PORT",
        help="Tell Prometheus the metrics of this process there; each process takes the next.",
    ),
]
LogFormat = Annotated[
    str | None,
    typer.Option(
        metavar="text|json",
        parser=log_form,
        envvar="LANEWAY_LOG_FORMAT",
        help="How log lines are written.",
    ),
]
