"""Options that `laneway worker`, `remote-worker`, `server` and `up` share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from laneway.cli import inputs
from laneway.cli.exits import log_as_json
from laneway.cli.option_groups import takes

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


def _number(setting: str, help_text: str, *, least: int = 1, most: int | None = None) -> Any:
    """An option for a whole number that an environment variable can set too."""
    return typer.Option(min=least, max=most, envvar=f"LANEWAY_{setting}", help=help_text)


App = Annotated[
    str,
    typer.Argument(metavar="APP", help="The application: module:name, or module for its `lw`."),
]
Open = Annotated[
    bool,
    typer.Option(
        "--open/--no-open",
        envvar="LANEWAY_OPEN",
        help="Open the login link in a browser, if one can appear on this screen.",
    ),
]

_WORKER: Final[dict[str, Any]] = {
    "processes": Annotated[
        int | None,
        _number(
            "WORKER_PROCESSES", "Worker processes to run, under a supervisor that restarts them."
        ),
    ],
    "concurrency": Annotated[
        int | None, _number("CONCURRENCY", "Async jobs a process runs at once.")
    ],
    "threads": Annotated[int | None, _number("THREADS", "Threads for plain `def` handlers.")],
    "children": Annotated[
        int | None, _number("CHILDREN", "Child processes for isolated handlers.", least=0)
    ],
    "slots": Annotated[
        int | None,
        _number("SLOTS", "Jobs a process runs at once, of all kinds; 1: one at a time."),
    ],
    "max_jobs": Annotated[
        int | None,
        _number("MAX_JOBS", "Exit after N jobs; a supervisor then starts a new process."),
    ],
    "max_jobs_per_child": Annotated[
        int | None,
        _number(
            "MAX_JOBS_PER_CHILD",
            "Replace a child process after N jobs; 1: a new one per job.",
        ),
    ],
    "name": Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="LANEWAY_WORKER_NAME",
            help="Display name; host:pid by default. Several processes add -1, -2 …",
        ),
    ],
    "grace": Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            envvar="LANEWAY_SHUTDOWN_GRACE",
            help="Time for running jobs to finish at shutdown.",
        ),
    ],
    "metrics_port": Annotated[
        int | None,
        _number(
            "METRICS_PORT",
            "Serve Prometheus metrics on this port; each further process uses the next.",
            least=0,
            most=65535,
        ),
    ],
}
_SERVER: Final[dict[str, Any]] = {
    "host": Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            envvar="LANEWAY_SERVER_HOST",
            help="Address to listen on; loopback by default.",
        ),
    ],
    "port": Annotated[
        int | None,
        typer.Option(min=0, max=65535, envvar="LANEWAY_SERVER_PORT", help="8420 by default."),
    ],
    "grpc": Annotated[
        bool,
        typer.Option(
            "--grpc",
            envvar="LANEWAY_GRPC",
            help="Serve remote workers too. LANEWAY_GRPC_CERT and LANEWAY_GRPC_KEY name the files"
            " of a certificate chain and its key (PEM). Without them only loopback addresses are"
            " accepted.",
        ),
    ],
    "grpc_host": Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            envvar="LANEWAY_GRPC_HOST",
            help="Address for remote workers; 127.0.0.1 by default.",
        ),
    ],
    "grpc_port": Annotated[
        int | None,
        typer.Option(min=0, max=65535, envvar="LANEWAY_GRPC_PORT", help="8421 by default."),
    ],
    "tls_cert": Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            metavar="FILE",
            envvar="LANEWAY_TLS_CERT",
            help="Certificate chain (PEM); off loopback, this or --behind-tls-proxy is required.",
        ),
    ],
    "tls_key": Annotated[
        Path | None,
        typer.Option(
            "--tls-key",
            metavar="FILE",
            envvar="LANEWAY_TLS_KEY",
            help="Private key of the certificate.",
        ),
    ],
    "behind_tls_proxy": Annotated[
        bool,
        typer.Option(
            "--behind-tls-proxy",
            envvar="LANEWAY_BEHIND_TLS_PROXY",
            help="A proxy terminates TLS: serve plain HTTP off loopback. LANEWAY_TRUSTED_PROXIES"
            " names the addresses whose X-Forwarded-For and -Proto are trusted.",
        ),
    ],
}
_LOGGING: Final[dict[str, Any]] = {
    "log_format": Annotated[
        str | None,
        typer.Option(
            metavar="text|json",
            parser=log_format,
            envvar="LANEWAY_LOG_FORMAT",
            help="Format of log lines.",
        ),
    ],
    "log_level": Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            parser=log_level,
            envvar="LANEWAY_LOG_LEVEL",
            help="Lowest level of log lines, also of the application's loggers; DEBUG shows when"
            " jobs start.",
        ),
    ],
}
_QUIET: Final[dict[str, Any]] = {
    "quiet": Annotated[
        bool,
        typer.Option(
            "--quiet",
            envvar="LANEWAY_QUIET",
            help="Log no line for each job that starts or ends; failures, and jobs that a stop"
            " returns to the queue, are logged.",
        ),
    ],
}


def _set_logging(given: dict[str, Any]) -> dict[str, Any]:
    """Set up the logs of the process tree, which reads this from the environment; the rest."""
    chosen = {name: given.pop(name, None) for name in (*_LOGGING, *_QUIET)}
    chosen["quiet"] = "true" if chosen["quiet"] else None
    os.environ.update({f"LANEWAY_{name.upper()}": text for name, text in chosen.items() if text})
    log_as_json(os.environ.get("LANEWAY_LOG_FORMAT") == "json")
    return given


# These decorators set up logging, and give a command the other options as `options`.
takes_worker_options = takes("options", {**_WORKER, **_LOGGING, **_QUIET}, _set_logging)
takes_server_options = takes("options", {**_SERVER, **_LOGGING}, _set_logging)
takes_server_and_worker_options = takes("options", {**_SERVER, **_LOGGING, **_QUIET}, _set_logging)
