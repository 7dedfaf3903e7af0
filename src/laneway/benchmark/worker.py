"""The worker process of a benchmark: `python -m laneway.benchmark.worker`, as run.py starts it.

It takes no part in leadership: a benchmark runs no watchdog, schedule or retention on the jobs of
others. It ends with the process that holds the other end of its standard input.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final

from laneway.benchmark.app import make_app
from laneway.config.settings import Settings
from laneway.engine.leader.services import LeaderServices
from laneway.engine.process.lifecycle import run_worker_process
from laneway.engine.process.logs import configure
from laneway.engine.worker import Worker
from laneway.store.benchmark import NAME

GRACE_S: Final = 1.0


class NoLeaderServices(LeaderServices):
    """Services that never start, so that this process never leads."""

    def start(self) -> None:
        """Do nothing."""

    async def resign(self) -> None:
        """Do nothing."""

    async def cancel(self) -> None:
        """Do nothing."""


class FollowingWorker(Worker):
    """A worker that claims jobs and never leads."""

    def _build(self) -> None:
        super()._build()
        self.leader_services = NoLeaderServices(
            self.databases.rest, self.settings, self._warnings, self.id, _ignore
        )


def _ignore(job_types: set[str]) -> None:
    """Take no notice of jobs that leaders take back."""


def worker_settings(dsn: str) -> Settings:
    """The user's settings, without what would create lanes or open ports."""
    changed: dict[str, Any] = {"lanes": (), "metrics_port": None, "application": None}
    # Also where a file, not a variable, has the database of the user.
    return Settings.load(database_url=dsn).model_copy(update=changed)


def _end_with_parent() -> None:
    def watch() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=watch, name="parent pipe", daemon=True).start()


def main() -> int:
    _end_with_parent()
    dsn = os.environ["LANEWAY_DATABASE_URL"]
    settings = worker_settings(dsn)
    configure(settings)
    lw = make_app(dsn)

    def make() -> Worker:
        return FollowingWorker(
            dsn,
            settings,
            lw.handlers,
            only_lanes=frozenset({NAME}),
            name=NAME,
            transport="database",
        )

    return run_worker_process(make, GRACE_S)


if __name__ == "__main__":
    sys.exit(main())
