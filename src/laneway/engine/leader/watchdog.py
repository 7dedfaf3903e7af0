"""The watchdog, run by the leader: reclaims jobs of silent workers and jobs without progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final
from uuid import UUID

from laneway.config.settings import Settings
from laneway.domain.approval import display_name
from laneway.engine.service import Service
from laneway.observability.counters import PROCESS
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import Database
from laneway.store.leases import WatchdogPass, resign, run_watchdog
from laneway.store.retention import LeaderTerm
from laneway.store.workers import sweep

log = SafeLogger("laneway")

SWEEP_S = 600.0
# The shortest delay, for a look that came a little early.
SHORTEST_S = 0.05
_ENDS: Final = {"failed": "failed: no retries left", "cancelled": "cancelled, as requested"}


class LapseDetector:
    """Decides at each renewal whether leadership may have lapsed since the last one.

    It may lapse in an outage or a freeze, even if no other process led meanwhile. A jump of the
    database's clock counts too: it makes other schedules due.
    """

    JUMP_S: ClassVar[float] = 1.0

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._at: float | None = None
        self._clock_s = 0.0
        # Whether the database's clock jumped before the last renewal.
        self.has_jumped = False

    def may_have_lapsed(self, at: float, clock_s: float) -> bool:
        """Whether leadership may have lapsed before this renewal, sent at local time `at`."""
        before, self._at = self._at, at
        clock_before_s, self._clock_s = self._clock_s, clock_s
        if before is None:
            return True
        passed_s = at - before
        self.has_jumped = abs(clock_s - clock_before_s - passed_s) > self.JUMP_S
        return passed_s >= self._ttl_s or self.has_jumped


def _until(next_s: float | None, longest_s: float) -> float:
    """The delay until the next lapse, shortened because the service jitters it by a tenth."""
    if next_s is None:
        return longest_s
    return min(longest_s, max(SHORTEST_S, next_s * 0.95))


def _log_lost(answer: WatchdogPass) -> None:
    """Log the reclaimed attempts: a few by name, the others by number."""
    for one in answer.lost:
        log.warning(
            "%s %s: attempt %d was taken back: %s; %s",
            display_name(one.job_type),
            one.job_id,
            one.attempt,
            one.stalled or f"worker {one.worker} did not renew its lease",
            _ENDS.get(one.ended or "", "queued again"),
        )
    if more := answer.reclaimed - len(answer.lost):
        log.warning("%d more attempts were taken back from workers", more)


class Watchdog(Service):
    """Runs in every worker process; its statement lets only the leader reclaim jobs."""

    name: ClassVar[str] = "watchdog"
    # Short, because schedules wait for it after an outage.
    longest_backoff_s: ClassVar[float] = 1.0

    def __init__(
        self,
        database: Database,
        settings: Settings,
        warnings: LogThrottle,
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
        self._lapse_detector = LapseDetector(settings.leader_ttl)
        self.is_leader = False
        self.epoch: int | None = None
        # Whether the last look found work for retention.
        self.has_duties = False
        # Called when due schedules may have changed unnoticed: this process was elected or leads
        # again, or the database's clock jumped.
        self.on_elected: Callable[[], None] = lambda: None

    @property
    def term(self) -> LeaderTerm | None:
        """The proof of leadership for other writes of the leader; None if another leads."""
        return LeaderTerm(self._holder, self.epoch) if self.epoch is not None else None

    async def run_once(self) -> float | None:
        self.is_leader = False
        asked_at = time.monotonic()
        answer = await self._database.run(run_watchdog(self._holder, self._ttl))
        may_have_lapsed = self._lapse_detector.may_have_lapsed(asked_at, answer.clock_s)
        is_new = answer.epoch is not None and (may_have_lapsed or answer.epoch != self.epoch)
        self.epoch = answer.epoch
        self.is_leader = answer.epoch is not None
        self.has_duties = answer.has_duties
        PROCESS.leads(self._holder, answer.epoch)
        PROCESS.lapses += answer.reclaimed
        if is_new or self._lapse_detector.has_jumped:
            self.on_elected()
        if not self.is_leader:
            return _until(answer.next_s, self._ttl)
        _log_lost(answer)
        if answer.job_types:
            self._on_reclaimed(set(answer.job_types))
        if answer.more:
            return 0
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            await self._database.run(sweep(self._holder))
        return _until(answer.next_s, self._interval)

    async def resign(self) -> None:
        """Stop for good and let another process lead at once."""
        await self.cancel()
        # The cancelled round may have left its own values.
        self.is_leader = False
        self.epoch = None
        PROCESS.leads(self._holder, None)
        await self._database.run(resign(self._holder))
