"""The services of the leader, and how a server without workers runs them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from uuid import UUID, uuid4

from laneway import __version__
from laneway.config.settings import Settings
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.leader.retention import RetentionService
from laneway.engine.leader.schedule_checks import ScheduleCheck
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
    """Watchdog, retention and scheduler of a process; the database lets one process act."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        warnings: LogThrottle,
        holder: UUID,
        on_work: Callable[[set[str]], None],
        checks: Mapping[str, ScheduleCheck] = MappingProxyType({}),
        resources: SimpleNamespace | None = None,
    ) -> None:
        """Checks are application code, so only workers have them and serve their schedules."""
        self.watchdog = Watchdog(database, settings, warnings, holder, on_work)
        self.retention = RetentionService(database, settings, warnings, self.watchdog, on_work)
        self.scheduler = Scheduler(
            database, warnings, holder, checks, resources or SimpleNamespace(), on_work
        )
        self.watchdog.on_elected = self.scheduler.elected

    def start(self) -> None:
        self.watchdog.start()
        self.retention.start()
        self.scheduler.start()

    async def resign(self) -> None:
        """Let another process lead at once."""
        await self.scheduler.resign()
        await self.watchdog.resign()

    async def cancel(self) -> None:
        for service in (self.retention, self.watchdog, self.scheduler):
            await service.cancel()


def server_info(server_id: UUID, name: str) -> WorkerInfo:
    """The row of a server, so that status can name it: a worker that runs no jobs."""
    return WorkerInfo(
        id=server_id,
        name=name,
        host=socket.gethostname(),
        pid=os.getpid(),
        code=__version__,
        job_types=[],
        lanes=[],
        concurrency=0,
    )


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
        self._info = server_info(uuid4(), name)
        self._leader_services = LeaderServices(
            self._database, settings, warnings, self._info.id, self._peers.wake
        )
        scheduler = self._leader_services.scheduler
        self._services: list[Service] = [
            Registrar(self._database, warnings, self._info, scheduler.wake)
        ]
        if settings.can_listen:
            self._services.append(
                Wakeups(dsn, settings, warnings, self._on_message, scheduler.wake)
            )

    async def start(self) -> None:
        """Register the process and start its services; raises DatabaseUnavailable."""
        try:
            await self._database.run(workers.register(self._info))
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
                await self._database.run(workers.stop(self._info.id))
        for service in self._services:
            await service.cancel()
        await self._leader_services.cancel()
        await self._peers.close(send=False)
        await self._database.close()

    def _on_message(self, text: str) -> None:
        if text.partition(" ")[0] == "schedules":
            self._leader_services.scheduler.wake()
