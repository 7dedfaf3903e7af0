"""A replica's part in leading: a cluster of nothing but remote workers needs a leader, too."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from uuid import UUID

from laneway import __version__
from laneway.config import Settings
from laneway.engine.complaints import Complaints
from laneway.engine.retention import Retention
from laneway.engine.scheduler import Scheduler
from laneway.engine.watchdog import Watchdog
from laneway.store import workers
from laneway.store.database import Database
from laneway.store.workers import WorkerInfo


class Duties:
    """Watchdog, retention and scheduler; known under an id, so that status can name the leader."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        complaints: Complaints,
        replica_id: UUID,
        name: str,
        on_work: Callable[[set[str]], None],
    ) -> None:
        self._database = database
        self._id = replica_id
        self._name = name
        self.watchdog = Watchdog(database, settings, complaints, replica_id, on_work)
        self.retention = Retention(database, settings, complaints, self.watchdog, on_work)
        # Checks are code of applications: schedules that have one are for their workers.
        self.scheduler = Scheduler(database, complaints, replica_id, {}, SimpleNamespace(), on_work)
        self.watchdog.on_elected = self.scheduler.wake

    async def introduce(self) -> None:
        """Makes the replica known, as what runs no jobs itself."""
        await self._database.run(
            workers.register(
                WorkerInfo(
                    id=self._id,
                    name=self._name,
                    host=socket.gethostname(),
                    pid=os.getpid(),
                    code=__version__,
                    job_types=[],
                    lanes=[],
                    concurrency=0,
                )
            )
        )

    def start(self) -> None:
        self.watchdog.start()
        self.retention.start()
        self.scheduler.start()

    async def resign(self) -> None:
        """Lets another lead at once, and says goodbye."""
        await self.scheduler.resign()
        await self.watchdog.resign()
        await self._database.run(workers.stop(self._id))

    async def cancel(self) -> None:
        for service in (self.retention, self.watchdog, self.scheduler):
            await service.cancel()
