"""The leader's duty: takes back jobs whose worker fell silent or whose work stands still."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from laneway.config import Settings
from laneway.engine.complaints import Complaints
from laneway.engine.service import Service
from laneway.store.database import Database
from laneway.store.leases import resign, watch
from laneway.store.retention import Mandate
from laneway.store.workers import sweep
from laneway.tally import PROCESS

SWEEP_S = 600.0


class Watchdog(Service):
    """Runs in every worker process; the database lets one of them act, in the same statement."""

    name: ClassVar[str] = "watchdog"

    def __init__(
        self,
        database: Database,
        settings: Settings,
        complaints: Complaints,
        holder: UUID,
        on_reclaimed: Callable[[set[str]], None],
    ) -> None:
        super().__init__(complaints)
        self._database = database
        self._holder = holder
        self._ttl = settings.leader_ttl
        self._interval = settings.watchdog_interval
        self._on_reclaimed = on_reclaimed
        self._swept = 0.0
        self.is_leader = False
        self.epoch: int | None = None
        # Something waits for the leader's other duties, as of the last look.
        self.has_duties = False
        self.on_elected: Callable[[], None] = lambda: None

    @property
    def mandate(self) -> Mandate | None:
        """What the leader's other duties show for their writes; None: another leads."""
        return Mandate(self._holder, self.epoch) if self.epoch is not None else None

    async def run_once(self) -> float | None:
        self.is_leader = False
        answer = await self._database.run(watch(self._holder, self._ttl))
        is_new = answer.epoch is not None and answer.epoch != self.epoch
        self.epoch = answer.epoch
        self.is_leader = answer.epoch is not None
        self.has_duties = answer.has_duties
        PROCESS.leads(self._holder, answer.epoch)
        PROCESS.lapses += answer.reclaimed
        if is_new:
            self.on_elected()
        if not self.is_leader:
            return self._ttl / 2
        if answer.job_types:
            self._on_reclaimed(set(answer.job_types))
        if answer.more:
            return 0
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            await self._database.run(sweep(self._holder))
        return self._interval

    async def resign(self) -> None:
        """Stops for good and lets another lead at once."""
        await self.cancel()
        # Whatever the round that was broken off would have answered.
        self.is_leader = False
        self.epoch = None
        PROCESS.leads(self._holder, None)
        await self._database.run(resign(self._holder))
