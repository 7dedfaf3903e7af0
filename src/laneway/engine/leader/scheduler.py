"""Submits the jobs of schedules.

The leader serves schedules without a check; a schedule with a check is served by a worker that has
the check's function. The database's clock decides what is due, and this module computes the slots.
The database accepts one outcome per slot, and only from a process that may decide it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import ClassVar
from uuid import UUID

from laneway.domain import cron
from laneway.domain.cron import Timing
from laneway.domain.redaction import redact
from laneway.domain.schedule import BATCH, FirePlan, plan_fires, replanned
from laneway.domain.text import escape_text
from laneway.engine.leader.schedule_checks import ScheduleCheck
from laneway.engine.run.exception_text import message_of, name_of
from laneway.engine.run.threads import Threads
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store import schedules as store
from laneway.store.database import Database
from laneway.store.schedules import Due, SlotEntry

log = SafeLogger("laneway")

LONGEST_S = 30.0
SHORTEST_S = 0.005
# The pause before a failed schedule is tried again.
TROUBLE_S = 1.0
# A process holds the right to decide a check for the check's timeout and this margin.
MARGIN_S = 10.0
NOTE_CHARS = 1000


class Scheduler(Service):
    """Runs in every worker process; sleeps until a schedule that it may serve is due."""

    name: ClassVar[str] = "scheduler"
    longest_backoff_s: ClassVar[float] = 1.0

    def __init__(
        self,
        database: Database,
        warnings: LogThrottle,
        holder: UUID,
        checks: Mapping[str, ScheduleCheck],
        resources: SimpleNamespace,
        on_submitted: Callable[[set[str]], None],
    ) -> None:
        super().__init__(warnings)
        self._database = database
        self._holder = holder
        self._checks = checks
        self._resources = resources
        self._on_submitted = on_submitted
        self._threads = Threads()
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._is_elected = False

    def elected(self) -> None:
        """Look again: this process leads now, and due schedules may have changed before."""
        self._is_elected = True
        self.wake()

    async def run_once(self) -> float | None:
        found = await self._database.run(store.find_due(self._holder, self._checks.keys()))
        if self._is_elected and found.epoch is not None:
            is_replanned = await self._replan()
            self._is_elected = False
            if is_replanned:
                return 0
        is_done = True
        for due in found.due:
            if due.check_name is not None and (due.next_at or due.asked_at):
                self._begin(due, found.now)
            elif not await self._serve(due, found.now, found.epoch):
                is_done = False
        if not is_done:
            return TROUBLE_S
        if any(due.name not in self._checking for due in found.due):
            # More slots of these, or schedules beyond the batch, may be due.
            return 0
        if found.wait_s is not None and 0 < found.wait_s < LONGEST_S:
            self._wake_in(found.wait_s)
        return LONGEST_S

    async def checked(self) -> None:
        """Wait until no check runs here."""
        while self._checking:
            await asyncio.wait(self._checking.values())

    async def cancel(self) -> None:
        await super().cancel()
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._checking.values():
            task.cancel()
        await asyncio.gather(*self._checking.values(), return_exceptions=True)
        self._threads.close()

    async def resign(self) -> None:
        """Stop for good and release running checks, so that others run them at once."""
        is_checking = bool(self._checking)
        await self.cancel()
        if is_checking:
            await self._database.run(store.release_checks(self._holder))

    def _wake_in(self, delay_s: float) -> None:
        """Wake after exactly this delay; the service's own delays are jittered."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay_s = max(SHORTEST_S, delay_s + 0.001)
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self.wake)

    # Without a check --------------------------------------------------------------------------

    async def _serve(self, due: Due, now: datetime, epoch: int | None) -> bool:
        """Plan or fire one schedule; return whether the next look may come at once."""
        try:
            timing = await self._timing(due)
            if timing is None:
                return False
            if due.next_at is None:
                return await self._plan(due, timing, now)
            plan = plan_fires(
                timing, due.missed, due.catch_up, due.next_at, now, BATCH, due.last_at
            )
            entries = [*_missed(plan), *(SlotEntry(s, "submitted", plan.note) for s in plan.slots)]
            return await self._fire(due, entries, plan.next_at, epoch) == "fired"
        except DatabaseUnavailable:
            raise
        except Exception as error:
            # A failing schedule must not block the others.
            self._warnings.warn(f"schedule {due.name}", f"{type(error).__name__}: {error}")
            log.debug("schedule %s failed", due.name, exc_info=True)
            return False

    async def _timing(self, due: Due) -> Timing | None:
        """Parse the schedule's cron; disable the schedule if that fails."""
        try:
            return cron.parse(due.cron, due.timezone)
        except InvalidInput as error:
            await self._stop(due, str(error))
            return None

    async def _stop(self, due: Due, reason: str) -> None:
        if await self._database.run(store.stop(due.name, due.seen, reason)):
            log.error("schedule %s: disabled: %s", due.name, reason)

    async def _replan(self) -> bool:
        """Correct plans made while the database's clock was ahead; return whether any were.

        Slots that already fired do not fire again. The others fire when they are due.
        """
        is_replanned = False
        for now, due in await self._database.run(store.find_ahead()):
            with contextlib.suppress(InvalidInput):
                timing = cron.parse(due.cron, due.timezone)
                next_at = replanned(timing, due.next_at or now, due.last_at, due.seen, now)
                if next_at is not None:
                    await self._database.run(store.replan(due, next_at))
                    is_replanned = True
        return is_replanned

    async def _plan(self, due: Due, timing: Timing, now: datetime) -> bool:
        # If the clock was set back, slots that already fired stay fired.
        next_at = cron.next_slot(timing, now)
        if next_at is None:
            await self._stop(due, "cron: has no further run")
            return False
        planned = await self._database.run(store.plan(due.name, due.seen, next_at))
        return planned is True

    async def _fire(
        self,
        due: Due,
        entries: list[SlotEntry],
        next_at: datetime | None,
        epoch: int | None,
        *,
        manual: bool = False,
        check_error: str | None = None,
    ) -> str:
        """Record the slots; return fired, or the reason why not."""
        fired = await self._database.run(
            store.fire(
                due, entries, next_at, self._holder, epoch, manual=manual, check_error=check_error
            )
        )
        if fired.answer != "fired":
            log.debug("schedule %s: not fired here: %s", due.name, fired.answer)
        elif fired.taken and any(entry.outcome == "submitted" for entry in entries):
            self._on_submitted({due.job_type})
        return fired.answer

    # With a check -----------------------------------------------------------------------------

    def _begin(self, due: Due, now: datetime) -> None:
        """Start a check as a task, so that a slow check does not delay other schedules."""
        if due.name not in self._checking:
            task = asyncio.get_running_loop().create_task(
                self._check(due, now), name=f"laneway check {due.name}"
            )
            self._checking[due.name] = task
            task.add_done_callback(lambda _: self._ended(due.name))

    def _ended(self, name: str) -> None:
        self._checking.pop(name, None)
        self.wake()

    async def _check(self, due: Due, now: datetime) -> None:
        cause = f"schedule {due.name}"
        try:
            await self._decide(due, now)
            self._warnings.resolved(cause)
        except Exception as error:
            # Its right to decide lapses, and the slot is decided again.
            self._warnings.warn(cause, f"{type(error).__name__}: {error}")
            log.debug("the check of schedule %s failed", due.name, exc_info=True)
            await asyncio.sleep(TROUBLE_S)

    async def _decide(self, due: Due, now: datetime) -> None:
        """Run the check for one slot and record the outcome."""
        timing = await self._timing(due)
        check = self._checks.get(due.check_name or "")
        if timing is None or check is None:
            return
        lease_s = check.timeout + MARGIN_S
        if not await self._database.run(store.begin_check(due, self._holder, lease_s)):
            # Another process runs the check, or the schedule is being changed: wait a moment.
            await asyncio.sleep(TROUBLE_S)
            return
        if due.asked_at is not None:
            plan = FirePlan((due.asked_at,), f"by {due.asked_by}", None, None, None)
        else:
            # One slot at a time: the check may answer differently for the next.
            first = due.next_at or now
            plan = plan_fires(timing, due.missed, due.catch_up, first, now, 1, due.last_at)
        outcome, note, error = "submitted", plan.note, None
        if plan.slots:
            outcome, note, error = await self._ask(check, plan.note)
        entries = [*_missed(plan), *(SlotEntry(slot, outcome, note) for slot in plan.slots)]
        for _ in range(int(MARGIN_S / TROUBLE_S)):
            answer = await self._fire(
                due, entries, plan.next_at, None, manual=due.asked_at is not None, check_error=error
            )
            if answer != "busy":
                break
            await asyncio.sleep(TROUBLE_S)

    async def _ask(
        self, check: ScheduleCheck, note: str | None
    ) -> tuple[str, str | None, str | None]:
        """The slot's outcome and note, and the check's error if it failed."""
        try:
            holds = await check.ask(self._resources, self._threads)
        except Exception as raised:
            error = escape_text(redact(f"{name_of(raised)}: {message_of(raised)}"))[:NOTE_CHARS]
        else:
            return ("submitted", note, None) if holds else ("skipped", f"not {check.name}", None)
        log.warning("check %s: %s", check.name, error)
        return "failed", f"check {check.name}: {error}", error


def _missed(plan: FirePlan) -> list[SlotEntry]:
    return [] if plan.missed_at is None else [SlotEntry(plan.missed_at, "missed", plan.missed)]
