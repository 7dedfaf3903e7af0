"""Runs the worker processes of an application until a stop signal, alone or under a supervisor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypedDict, Unpack

from laneway.app.loader import load_app
from laneway.config.settings import Settings
from laneway.engine.process.health import WorkerHealth
from laneway.engine.process.lifecycle import run_worker_process
from laneway.engine.process.logs import configure
from laneway.engine.process.supervisor import Supervisor
from laneway.engine.runtime import WorkerRuntime
from laneway.engine.worker import Worker

# Options that replace settings of the same name, for each process.
_SETTINGS: Final = ("concurrency", "threads", "children", "slots", "max_jobs_per_child")
# Options that a supervisor passes on.
_PASSED_ON: Final = (*_SETTINGS, "max_jobs", "grace")


class WorkerOptions(TypedDict, total=False):
    """Options of `laneway worker` and `laneway remote-worker`."""

    processes: int | None
    concurrency: int | None
    threads: int | None
    children: int | None
    slots: int | None
    max_jobs: int | None
    max_jobs_per_child: int | None
    name: str | None
    grace: float | None
    metrics_port: int | None


def run_worker(
    app: str, *, lanes: list[str] | None = None, **options: Unpack[WorkerOptions]
) -> int:
    """Runs workers of an application until a stop signal; with `processes`, under a supervisor."""
    loaded = load_app(app)
    # All processes of a supervisor would list the same: the first is enough.
    lists_types = os.environ.get("LANEWAY_SUPERVISOR_FDS", "").split(",")[3:] in ([], ["0"])

    def make(settings: Settings, dsn: str) -> Worker:
        return Worker(
            dsn,
            settings,
            loaded.handlers,
            only_lanes=frozenset(lanes) if lanes is not None else None,
            name=options.get("name"),
            app=app,
            max_jobs=options.get("max_jobs"),
            transport="database",
            lists_types=lists_types,
        )

    arguments = ["worker", app, *([] if lanes is None else [f"--lanes={','.join(lanes)}"])]
    return run_processes(loaded.settings, make, arguments, options, lambda: loaded.database.dsn)


def run_processes(
    settings: Settings,
    make: Callable[[Settings, str], WorkerRuntime],
    arguments: list[str],
    options: WorkerOptions,
    find_dsn: Callable[[], str] | None = None,
) -> int:
    """Run one worker in this process, or as many children as `processes` says.

    `make` gets the settings and the DSN, which is empty without a database. `arguments` make a
    child run the same worker.
    """
    given = {key: value for key, value in options.items() if value is not None}
    changed: dict[str, Any] = {
        key: given[key] for key in (*_SETTINGS, "metrics_port") if key in given
    }
    settings = settings.model_copy(update=changed)
    configure(settings)
    is_supervised = "LANEWAY_SUPERVISOR_FDS" in os.environ
    if settings.metrics_port is not None:
        from laneway.observability.metrics_endpoint import check_host

        check_host(settings)
    dsn = find_dsn() if find_dsn is not None else ""
    processes, grace = options.get("processes"), options.get("grace")
    if processes is None or is_supervised:
        health = WorkerHealth(settings)
        with _metrics_of(settings, health, is_supervised=is_supervised):
            return run_worker_process(lambda: make(settings, dsn), grace, health)
    passed = [f"--{key.replace('_', '-')}={given[key]}" for key in _PASSED_ON if key in given]
    child = [sys.executable, "-m", "laneway", *arguments, *passed]
    return Supervisor(child, processes, dsn or None, settings, grace, options.get("name")).run()


def _metrics_of(
    settings: Settings, health: WorkerHealth, *, is_supervised: bool
) -> AbstractContextManager[object]:
    """Serve metrics and health of this process, if a port is set for them."""
    if settings.metrics_port is None:
        return nullcontext()
    from laneway.observability.metrics_endpoint import of_settings

    # A taken port must not stop a supervised process: others may serve metrics.
    port = settings.metrics_port
    return of_settings(settings, port, must_listen=not is_supervised, route=health.route)
