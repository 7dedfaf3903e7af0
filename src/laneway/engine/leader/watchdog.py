"""The leader's duty: takes back jobs whose worker fell silent or whose work stands still."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar
from uuid import UUID

from laneway.config.settings import Settings
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.observability.counters import PROCESS
from laneway.store.database import Database
from laneway.store.leases import resign, watch
from laneway.store.retention import LeaderTerm
from laneway.store.workers import sweep

SWEEP_S = 600.0
# The soonest look after one that came a little early.
SHORTEST_S = 0.05


class Lapse:
    """Tells from one renewal to the next whether leadership may have lapsed in between.

    So it has after an outage or a freeze, also where nobody else has led; and a clock of the
    database that jumps makes other schedules due.
    """

    JUMP_S: ClassVar[float] = 1.0

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._at: float | None = None
        self._clock_s = 0.0
        # Whether the database's clock has jumped before the last renewal.
        self.has_jumped = False

    def is_over(self, at: float, clock_s: float) -> bool:
        """Whether it may have lapsed before this renewal, asked for at `at` of our own clock."""
        before, self._at = self._at, at
        clock_before_s, self._clock_s = self._clock_s, clock_s
        if before is None:
            return True
        passed_s = at - before
        self.has_jumped = abs(clock_s - clock_before_s - passed_s) > self.JUMP_S
        return passed_s >= self._ttl_s or self.has_jumped


def _until(next_s: float | None, longest_s: float) -> float:
    """The delay that ends as the next lapse comes, spread by a tenth as every delay is."""
    if next_s is None:
        return longest_s
    return min(longest_s, max(SHORTEST_S, next_s * 0.95))


class Watchdog(Service):
    """Runs in every worker process; the database lets one of them act, in the same statement."""

    name: ClassVar[str] = "watchdog"
    # After an outage schedules wait for this and for the scheduler.
    longest_backoff_s: ClassVar[float] = 1.0

    def __init__(
        self,
        database: Database,
        settings: Settings,
        warnings: ThrottledWarnings,
        holder: UUID,
        on_reclaimed: Callable[[set[str]], None],
    ) -> None:
        super().__init__(warnings)
        self._database = database
        self._holder = holder
        self._ttl = settings.leader_ttl
        self._interval = settings.watchdog_interval
        self._on_reclaimed = on_reclaimed
        self._swept = 0.0
        self._lapse = Lapse(settings.leader_ttl)
        self.is_leader = False
        self.epoch: int | None = None
        # Something waits for the leader's other duties, as of the last look.
        self.has_duties = False
        # Called whenever what is due may have changed unseen: elected, leading again, or a jump of
        # the database's clock, in each process.
        self.on_elected: Callable[[], None] = lambda: None

    @property
    def term(self) -> LeaderTerm | None:
        """What the leader's other duties show for their writes; None: another leads."""
        return LeaderTerm(self._holder, self.epoch) if self.epoch is not None else None

    async def run_once(self) -> float | None:
        self.is_leader = False
        asked_at = time.monotonic()
        answer = await self._database.run(watch(self._holder, self._ttl))
        is_over = self._lapse.is_over(asked_at, answer.clock_s)
        is_new = answer.epoch is not None and (is_over or answer.epoch != self.epoch)
        self.epoch = answer.epoch
        self.is_leader = answer.epoch is not None
        self.has_duties = answer.has_duties
        PROCESS.leads(self._holder, answer.epoch)
        PROCESS.lapses += answer.reclaimed
        if is_new or self._lapse.has_jumped:
            self.on_elected()
        if not self.is_leader:
            return _until(answer.next_s, self._ttl)
        if answer.job_types:
            self._on_reclaimed(set(answer.job_types))
        if answer.more:
            return 0
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            await self._database.run(sweep(self._holder))
        return _until(answer.next_s, self._interval)

    async def resign(self) -> None:
        """Stops for good and lets another lead at once."""
        await self.cancel()
        # Whatever the round that was broken off would have answered.
        self.is_leader = False
        self.epoch = None
        PROCESS.leads(self._holder, None)
        await self._database.run(resign(self._holder))
