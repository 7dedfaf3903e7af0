"""Submits the jobs of schedules: the leader those without a check, whoever knows it those with one.

The database's clock says what is due; which slots that makes is worked out here; the database lets
each slot have one outcome, and only by who may decide it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import ClassVar
from uuid import UUID

from laneway.domain import cron
from laneway.domain.cron import Timing
from laneway.domain.redaction import redact
from laneway.domain.schedule import BATCH, FirePlan, decide, replanned
from laneway.domain.text import escape_text
from laneway.engine.leader.schedule_checks import ScheduleCheck
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.run.exception_text import message_of, name_of
from laneway.engine.run.threads import Threads
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import schedules as store
from laneway.store.database import Database
from laneway.store.schedules import Due, SlotEntry

log = logging.getLogger("laneway")

LONGEST_S = 30.0
SHORTEST_S = 0.005
# What goes wrong with one schedule is tried again no sooner.
TROUBLE_S = 1.0
# How much longer than its check may take a checker keeps the right to decide.
MARGIN_S = 10.0
NOTE_CHARS = 1000


class Scheduler(Service):
    """Runs in every worker process; asleep until something is due that it may serve."""

    name: ClassVar[str] = "scheduler"
    longest_backoff_s: ClassVar[float] = 1.0

    def __init__(
        self,
        database: Database,
        warnings: ThrottledWarnings,
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
        """This process leads, or leads again: what is due may have changed unseen."""
        self._is_elected = True
        self.wake()

    async def run_once(self) -> float | None:
        look = await self._database.run(store.find_due(self._holder, self._checks.keys()))
        if self._is_elected and look.epoch is not None:
            is_replanned = await self._replan()
            self._is_elected = False
            if is_replanned:
                return 0
        is_done = True
        for due in look.due:
            if due.check_name is not None and (due.next_at or due.asked_at):
                self._begin(due, look.now)
            elif not await self._serve(due, look.now, look.epoch):
                is_done = False
        if not is_done:
            return TROUBLE_S
        if any(due.name not in self._checking for due in look.due):
            # More may be due of the same, or of those that were not told.
            return 0
        if look.wait_s is not None and 0 < look.wait_s < LONGEST_S:
            self._ring_in(look.wait_s)
        return LONGEST_S

    async def checked(self) -> None:
        """Returns once no check runs here."""
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
        """Stops for good and lets others run the checks at once."""
        is_checking = bool(self._checking)
        await self.cancel()
        if is_checking:
            await self._database.run(store.release_checks(self._holder))

    def _ring_in(self, delay_s: float) -> None:
        """To the point, where the loop's own delay is spread."""
        if self._alarm is not None:
            self._alarm.cancel()
        delay_s = max(SHORTEST_S, delay_s + 0.001)
        self._alarm = asyncio.get_running_loop().call_later(delay_s, self.wake)

    # Without a check --------------------------------------------------------------------------

    async def _serve(self, due: Due, now: datetime, epoch: int | None) -> bool:
        """Plans or fires one schedule; whether the next look may come at once."""
        try:
            timing = await self._timing(due)
            if timing is None:
                return False
            if due.next_at is None:
                return await self._plan(due, timing, now)
            turn = decide(timing, due.missed, due.catch_up, due.next_at, now, BATCH, due.last_at)
            entries = [*_missed(turn), *(SlotEntry(s, "submitted", turn.note) for s in turn.slots)]
            return await self._fire(due, entries, turn.next_at, epoch) == "fired"
        except DatabaseUnavailable:
            raise
        except Exception as error:
            # One schedule must not keep the others from their turn.
            self._warnings.warn(f"schedule {due.name}", f"{type(error).__name__}: {error}")
            log.debug("schedule %s failed", due.name, exc_info=True)
            return False

    async def _timing(self, due: Due) -> Timing | None:
        """When it comes round; a row that does not say so is disabled with the reason."""
        try:
            return cron.parse(due.cron, due.timezone)
        except InvalidInput as error:
            await self._stop(due, str(error))
            return None

    async def _stop(self, due: Due, reason: str) -> None:
        if await self._database.run(store.stop(due.name, due.seen, reason)):
            log.error("schedule %s: disabled: %s", due.name, reason)

    async def _replan(self) -> bool:
        """Mends plans that were made while the database's clock was ahead; whether there were any.

        Slots that have had their turn keep it; the others have it when they come round.
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
        # Should the clock have been set back: what had its turn has no second one.
        next_at = cron.next_slot(timing, now)
        if next_at is None:
            await self._stop(due, "cron: never comes round again")
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
        """Records the slots; fired, or why not."""
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
        """Starts a check beside the loop, so that a slow one keeps nobody waiting."""
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
            # Its right to decide lapses, and the slot has its turn again.
            self._warnings.warn(cause, f"{type(error).__name__}: {error}")
            log.debug("the check of schedule %s failed", due.name, exc_info=True)
            await asyncio.sleep(TROUBLE_S)

    async def _decide(self, due: Due, now: datetime) -> None:
        """Runs the check for one slot and records what came of it."""
        timing = await self._timing(due)
        check = self._checks.get(due.check_name or "")
        if timing is None or check is None:
            return
        lease_s = check.timeout + MARGIN_S
        if not await self._database.run(store.begin_check(due, self._holder, lease_s)):
            # Another was quicker, or somebody changes it: no need to ask at once.
            await asyncio.sleep(TROUBLE_S)
            return
        if due.asked_at is not None:
            turn = FirePlan((due.asked_at,), f"by {due.asked_by}", None, None, None)
        else:
            # One at a time: what held a moment ago need not hold for the next.
            first = due.next_at or now
            turn = decide(timing, due.missed, due.catch_up, first, now, 1, due.last_at)
        outcome, note, error = "submitted", turn.note, None
        if turn.slots:
            outcome, note, error = await self._ask(check, turn.note)
        entries = [*_missed(turn), *(SlotEntry(slot, outcome, note) for slot in turn.slots)]
        for _ in range(int(MARGIN_S / TROUBLE_S)):
            answer = await self._fire(
                due, entries, turn.next_at, None, manual=due.asked_at is not None, check_error=error
            )
            if answer != "busy":
                break
            await asyncio.sleep(TROUBLE_S)

    async def _ask(
        self, check: ScheduleCheck, note: str | None
    ) -> tuple[str, str | None, str | None]:
        """Outcome and note of the slot, and how the check failed if it did."""
        try:
            holds = await check.ask(self._resources, self._threads)
        except Exception as raised:
            error = escape_text(redact(f"{name_of(raised)}: {message_of(raised)}"))[:NOTE_CHARS]
        else:
            return ("submitted", note, None) if holds else ("skipped", f"not {check.name}", None)
        log.warning("check %s: %s", check.name, error)
        return "failed", f"check {check.name}: {error}", error


def _missed(turn: FirePlan) -> list[SlotEntry]:
    return [] if turn.missed_at is None else [SlotEntry(turn.missed_at, "missed", turn.missed)]
