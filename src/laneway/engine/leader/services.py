"""The leader services of a server: with only remote workers, a server must be able to lead."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from uuid import UUID, uuid4

from laneway import __version__
from laneway.config.settings import Settings
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.leader.retention import RetentionService
from laneway.engine.leader.scheduler import Scheduler
from laneway.engine.leader.watchdog import Watchdog
from laneway.engine.registrar import Registrar
from laneway.engine.service import Service
from laneway.errors import LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.store import workers
from laneway.store.database import Database
from laneway.store.waker import Waker
from laneway.store.workers import WorkerInfo


class LeaderServices:
    """Watchdog, retention and scheduler of a server, registered so that status can name it."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        warnings: LogThrottle,
        server_id: UUID,
        name: str,
        on_work: Callable[[set[str]], None],
    ) -> None:
        self._database = database
        # Registered as a worker that runs no jobs.
        self.info = WorkerInfo(
            id=server_id,
            name=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            code=__version__,
            job_types=[],
            lanes=[],
            concurrency=0,
        )
        self.watchdog = Watchdog(database, settings, warnings, server_id, on_work)
        self.retention = RetentionService(database, settings, warnings, self.watchdog, on_work)
        # Checks are application code, so workers serve the schedules that have one.
        self.scheduler = Scheduler(database, warnings, server_id, {}, SimpleNamespace(), on_work)
        self.watchdog.on_elected = self.scheduler.elected

    async def register(self) -> None:
        """Add the server to the table of workers."""
        await self._database.run(workers.register(self.info))

    def start(self) -> None:
        self.watchdog.start()
        self.retention.start()
        self.scheduler.start()

    async def resign(self) -> None:
        """Let another process lead at once, and mark this one as stopped."""
        await self.scheduler.resign()
        await self.watchdog.resign()
        await self._database.run(workers.stop(self.info.id))

    async def cancel(self) -> None:
        for service in (self.retention, self.watchdog, self.scheduler):
            await service.cancel()


class ServerLeadership:
    """Runs LeaderServices in a process without a worker; `start`, then `stop`."""

    STOP_S = 2.0

    def __init__(self, dsn: str, settings: Settings) -> None:
        self._settings = settings
        self._dsn = dsn
        warnings = LogThrottle()
        self._database = Database(dsn, settings, role="lead", size=1)
        self._peers = Waker.of_peers(self._database)
        name = f"{socket.gethostname()}:{os.getpid()} server"
        self._leader_services = LeaderServices(
            self._database, settings, warnings, uuid4(), name, self._peers.wake
        )
        scheduler = self._leader_services.scheduler
        self._services: list[Service] = [
            Registrar(self._database, warnings, self._leader_services.info, scheduler.wake)
        ]
        if settings.can_listen:
            self._services.append(
                Wakeups(dsn, settings, warnings, self._on_message, scheduler.wake)
            )

    async def start(self) -> None:
        """Register the process and start its services; raises DatabaseUnavailable."""
        try:
            await self._leader_services.register()
        except BaseException:
            await self._database.close()
            raise
        for service in self._services:
            service.start()
        self._leader_services.start()

    async def stop(self) -> None:
        """Let another process lead at once, and disconnect."""
        with contextlib.suppress(LanewayError, TimeoutError):
            async with asyncio.timeout(self.STOP_S):
                await self._leader_services.resign()
        for service in self._services:
            await service.cancel()
        await self._leader_services.cancel()
        await self._peers.close(send=False)
        await self._database.close()

    def _on_message(self, text: str) -> None:
        if text.partition(" ")[0] == "schedules":
            self._leader_services.scheduler.wake()
