"""Retention, run by the leader: deletes finished jobs by policy and expires old ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final

from laneway.config.settings import Settings
from laneway.engine.leader.watchdog import Watchdog
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store import edges, retention
from laneway.store.database import Database
from laneway.store.retention import LeaderTerm, WalkPosition

log = SafeLogger("laneway")

WALK_S: Final = 300.0
SWEEP_S: Final = 60.0
RECOUNT_S: Final = 30.0
PRUNE_S: Final = 3600.0
# After each step a walk pauses for three times as long as the step took.
REST: Final = 3.0
# Between two pages of waiting jobs.
PAGE_S: Final = 10.0


class RetentionService(Service):
    """Runs in every worker process; each statement checks that this process still leads.

    It does short tasks at the watchdog's interval: expire old jobs and approvals, release what
    handlers finished themselves, add up flows, do what ends of jobs have left. And it walks over
    all ended jobs, and over all waiting ones, in bounded steps.
    """

    name: ClassVar[str] = "retention"

    def __init__(
        self,
        database: Database,
        settings: Settings,
        warnings: LogThrottle,
        watchdog: Watchdog,
        on_promoted: Callable[[set[str]], None],
    ) -> None:
        super().__init__(warnings)
        self._database = database
        self._watchdog = watchdog
        self._on_promoted = on_promoted
        self._not_leading = settings.leader_ttl / 2
        self._interval = settings.watchdog_interval
        self._keep_events = settings.event_retention
        self._place: WalkPosition | None = None
        self._recount_at = 0.0
        # The waiting job where the next check begins.
        self._waiting_after = 0
        self._waiting_at = 0.0
        self._round_at = self._sweep_at = self._prune_at = self._walk_at = self._events_at = 0.0

    @property
    def is_walking(self) -> bool:
        """Whether a walk over the ended jobs is under way."""
        return self._place is not None

    async def run_once(self) -> float | None:
        term = self._watchdog.term
        if term is None:
            # Another process leads. If this one leads again, its walk starts from the beginning.
            self._place, self._walk_at = None, 0.0
            self._waiting_after, self._waiting_at = 0, 0.0
            return self._not_leading
        now = time.monotonic()
        if now >= self._round_at:
            if self._watchdog.has_duties and await self._run_short_tasks(term):
                return 0
            self._round_at = time.monotonic() + self._interval
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            await self._database.run(retention.sweep_keys(term))
        if now >= self._recount_at:
            self._recount_at = now + RECOUNT_S
            corrected = await self._database.run(retention.recount_usage(term))
            if corrected:
                log.warning("corrected %s wrong counters of slots and limits", corrected)
        if now >= self._waiting_at:
            await self._check_waiting(term)
        if now >= self._events_at:
            # Also right after the start: events of a restored dump keep streams from resuming.
            await self._prune_events(term)
            self._events_at = now + SWEEP_S
        if now >= self._prune_at:
            if await self._database.run(retention.prune_records(term)) >= retention.PRUNE_BATCH:
                return REST * (time.monotonic() - now)
            self._prune_at = now + PRUNE_S
        if self._place is None and now < self._walk_at:
            return max(0.0, self._round_at - time.monotonic())
        return await self._walk(term)

    async def _run_short_tasks(self, term: LeaderTerm) -> bool:
        """Run the short tasks; return whether there is more to do now."""
        overaged = await self._database.run(retention.expire_overaged(term))
        if overaged.job_types:
            self._on_promoted(set(overaged.job_types))
        expired = await self._database.run(retention.expire_approvals(term))
        released = await self._database.run(retention.release_self_finished(term))
        folded = await self._database.run(edges.fold_tallies(term))
        advanced = await self._database.run(edges.advance())
        if advanced.job_types:
            self._on_promoted(set(advanced.job_types))
        is_more = overaged.more or max(expired, released) >= retention.EXPIRE_BATCH
        is_more = is_more or advanced.more or folded >= edges.BATCH
        self._watchdog.has_duties = is_more
        return is_more

    async def _check_waiting(self, term: LeaderTerm) -> None:
        """Release waiting jobs that a restore of some tables has left without an end."""
        began = time.monotonic()
        step = await self._database.run(edges.mend_waits(term, self._waiting_after))
        if step.mended:
            log.warning("corrected %s waiting jobs whose tables were changed", step.mended)
        if step.job_types:
            self._on_promoted(set(step.job_types))
        ended = time.monotonic()
        self._waiting_after = step.after or 0
        rest_s = max(PAGE_S, REST * (ended - began))
        self._waiting_at = ended + (WALK_S if step.after is None else rest_s)

    async def _prune_events(self, term: LeaderTerm) -> None:
        prune = retention.prune_events(term, self._keep_events)
        while await self._database.run(prune) >= retention.PRUNE_BATCH:
            pass

    async def _walk(self, term: LeaderTerm) -> float:
        began = time.monotonic()
        step = await self._database.run(
            retention.delete_expired(term, self._place or WalkPosition())
        )
        ended = time.monotonic()
        self._place = step.position if step is not None else None
        if self._place is not None:
            return REST * (ended - began)
        self._walk_at = ended + WALK_S
        return max(0.0, self._round_at - ended)
