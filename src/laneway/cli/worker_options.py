"""What `laneway worker` and `laneway remote-worker` can both be told."""

from __future__ import annotations

import os
from typing import Annotated, Any

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


def _number(setting: str, help_text: str, *, least: int = 1, most: int | None = None) -> Any:
    """An option for a whole number that a setting of the environment gives too."""
    return typer.Option(min=least, max=most, envvar=f"LANEWAY_{setting}", help=help_text)


App = Annotated[
    str,
    typer.Argument(
        metavar="APP", help="Where the handlers are: module:name, or module for its `lw`."
    ),
]
Processes = Annotated[
    int | None,
    _number("WORKER_PROCESSES", "Worker processes to run, under a supervisor that restarts them."),
]
Concurrency = Annotated[int | None, _number("CONCURRENCY", "Async jobs a process runs at once.")]
Threads = Annotated[int | None, _number("THREADS", "Threads for plain handlers.")]
Children = Annotated[int | None, _number("CHILDREN", "Children for isolated handlers.", least=0)]
Slots = Annotated[
    int | None,
    _number("SLOTS", "Jobs a process runs at once, of all kinds together; 1: one at a time."),
]
MaxJobs = Annotated[
    int | None,
    _number("MAX_JOBS", "Exit after so many jobs; a supervisor then starts a new process."),
]
MaxJobsPerChild = Annotated[
    int | None,
    _number(
        "MAX_JOBS_PER_CHILD",
        "Replace a child of isolated handlers after so many jobs; 1: a fresh one per job.",
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
    _number(
        "METRICS_PORT",
        "Tell Prometheus the metrics of this process there; each process takes the next.",
        least=0,
        most=65535,
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
