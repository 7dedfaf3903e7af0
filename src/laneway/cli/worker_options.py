"""Options that `laneway worker`, `remote-worker`, `server` and `up` share."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from laneway.cli import inputs
from laneway.cli.exits import log_as_json

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_format(text: str) -> str:
    """Parse `text` or `json`."""
    if text not in ("text", "json"):
        raise typer.BadParameter("must be text or json")
    return text


def log_level(text: str) -> str:
    """Parse the name of a level, in any case."""
    if text.upper() not in LEVELS:
        from laneway.domain.suggestion import suggest

        raise typer.BadParameter(f"must be {', '.join(LEVELS)}{suggest(text.upper(), LEVELS)}")
    return text.upper()


def set_logging(form: str | None, level: str | None, *, quiet: bool) -> None:
    """Set up the logs of the whole process tree, which reads this from the environment."""
    given = {"LOG_FORMAT": form, "LOG_LEVEL": level, "QUIET": "true" if quiet else None}
    os.environ.update({f"LANEWAY_{name}": value for name, value in given.items() if value})
    log_as_json(os.environ.get("LANEWAY_LOG_FORMAT") == "json")


def _number(setting: str, help_text: str, *, least: int = 1, most: int | None = None) -> Any:
    """An option for a whole number that an environment variable can set too."""
    return typer.Option(min=least, max=most, envvar=f"LANEWAY_{setting}", help=help_text)


App = Annotated[
    str,
    typer.Argument(metavar="APP", help="The application: module:name, or module for its `lw`."),
]
Processes = Annotated[
    int | None,
    _number("WORKER_PROCESSES", "Worker processes to run, under a supervisor that restarts them."),
]
Concurrency = Annotated[int | None, _number("CONCURRENCY", "Async jobs a process runs at once.")]
Threads = Annotated[int | None, _number("THREADS", "Threads for plain `def` handlers.")]
Children = Annotated[
    int | None, _number("CHILDREN", "Child processes for isolated handlers.", least=0)
]
Slots = Annotated[
    int | None,
    _number("SLOTS", "Jobs a process runs at once, of all kinds; 1: one at a time."),
]
MaxJobs = Annotated[
    int | None,
    _number("MAX_JOBS", "Exit after N jobs; a supervisor then starts a new process."),
]
MaxJobsPerChild = Annotated[
    int | None,
    _number(
        "MAX_JOBS_PER_CHILD",
        "Replace a child process after N jobs; 1: a new one per job.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="LANEWAY_WORKER_NAME",
        help="Display name; host:pid by default. Several processes add -1, -2 …",
    ),
]
Open = Annotated[
    bool,
    typer.Option(
        "--open/--no-open",
        envvar="LANEWAY_OPEN",
        help="Open the login link in a browser, if one can appear on this screen.",
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        parser=inputs.duration,
        envvar="LANEWAY_SHUTDOWN_GRACE",
        help="Time for running jobs to finish at shutdown.",
    ),
]
MetricsPort = Annotated[
    int | None,
    _number(
        "METRICS_PORT",
        "Serve Prometheus metrics on this port; each further process uses the next.",
        least=0,
        most=65535,
    ),
]
LogFormat = Annotated[
    str | None,
    typer.Option(
        metavar="text|json",
        parser=log_format,
        envvar="LANEWAY_LOG_FORMAT",
        help="Format of log lines.",
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option(
        metavar="LEVEL",
        parser=log_level,
        envvar="LANEWAY_LOG_LEVEL",
        help="Lowest level of log lines, also of the application's loggers; DEBUG shows when jobs"
        " start.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        envvar="LANEWAY_QUIET",
        help="Log no line for each job that starts or ends; failures, and jobs that a stop returns"
        " to the queue, are logged.",
    ),
]
