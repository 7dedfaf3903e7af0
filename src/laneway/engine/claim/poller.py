"""The idle poll of a whole worker process: one cheap statement, however many lanes it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar, Protocol

from laneway.engine.claim.floor_check import FloorCheck
from laneway.engine.claim.floors import Floors
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.lanes import ControlState, Peek, peek
from laneway.store.workers import Presence

# The delay of a poll after a hint, so that a stream of submits costs a few polls per second.
HINT_S = 0.1
SHORTEST_S = 0.005
# A poll that says this or less, and has moved nothing, met only work that a transaction has locked.
LOCKED_S = 0.05


class PollOwner(Protocol):
    """The worker or server that a poller finds work for."""

    # The lanes, as last read.
    state: ControlState

    def job_types(self) -> list[str]:
        """The job types that it claims now."""
        ...

    def floors(self) -> Iterable[Floors]: ...

    async def refresh(self) -> None:
        """Read the lanes, which have changed."""
        ...

    def on_work(self, job_types: set[str]) -> None:
        """Claim jobs of these types."""
        ...

    def on_foreign_work(self, job_types: set[str]) -> None:
        """Wake others for jobs of these types."""
        ...


class Reporter(Protocol):
    """Reports regularly that its worker process lives."""

    def due_presence(self) -> Presence | None:
        """The report that the poll should make along, if one is due soon."""
        ...

    def on_reported(self, is_drained: bool) -> None: ...


class Poller(Service):
    """Promotes delayed jobs, notices control changes, and wakes the lanes that have work."""

    name: ClassVar[str] = "poller"

    def __init__(
        self,
        database: Database,
        warnings: LogThrottle,
        owner: PollOwner,
        reporter: Reporter | None = None,
    ) -> None:
        super().__init__(warnings)
        self._database = database
        self._owner = owner
        self._reporter = reporter
        self._alarm: asyncio.TimerHandle | None = None
        # Polls in a row that met only locked work.
        self._locked = 0
        self.floor_check = FloorCheck(database, warnings, owner.floors, owner.on_work)

    def start(self) -> None:
        super().start()
        self.floor_check.start()

    def hint(self) -> None:
        """Poll soon: a submitted job may be delayed and come due before the next poll."""
        self._wake_in(HINT_S)

    def _wake_in(self, delay_s: float) -> None:
        """Wake after exactly this delay; the service's own delays are jittered."""
        loop = asyncio.get_running_loop()
        if self._alarm is not None and self._alarm.when() <= loop.time() + delay_s:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_later(delay_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self.wake()

    async def stop(self) -> None:
        await self.floor_check.cancel()
        await super().stop()

    async def cancel(self) -> None:
        await self.floor_check.cancel()
        await super().cancel()
        if self._alarm is not None:
            self._alarm.cancel()

    async def run_once(self) -> float | None:
        types = self._owner.job_types()
        found = await self._peek(types)
        if found.version != self._owner.state.version:
            await self._owner.refresh()
        if found.due:
            self._owner.on_work(set(found.due))
        if found.promoted:
            foreign = set(found.promoted) - set(types)
            if foreign:
                self._owner.on_foreign_work(foreign)
        interval_s = self._interval_s(set(types))
        due_s = self._due_s(found)
        if due_s is not None and due_s < interval_s:
            self._wake_in(max(SHORTEST_S, due_s + 0.001))
        return interval_s

    def _due_s(self, found: Peek) -> float | None:
        """The time until the next work; longer each time while a transaction keeps it locked."""
        if found.next_due_s is None:
            self._locked = 0
            return None
        due_s = float(found.next_due_s)
        is_locked = 0 < due_s <= LOCKED_S and not found.promoted
        self._locked = self._locked + 1 if is_locked else 0
        return due_s if self._locked < 2 else LOCKED_S * 2.0 ** min(self._locked - 1, 10)

    async def _peek(self, types: list[str]) -> Peek:
        known = {
            job_type: floors for floors in self._owner.floors() for job_type in floors.job_types
        }
        ranges = [
            one
            for job_type in types
            if job_type in known
            for one in known[job_type].ranges(job_type, 0)
        ]
        rest = [job_type for job_type in types if job_type not in known]
        presence = None if self._reporter is None else self._reporter.due_presence()
        found = await self._database.run(peek(rest, ranges, presence))
        if self._reporter is not None and found.is_drained is not None:
            self._reporter.on_reported(found.is_drained)
        return found

    def _interval_s(self, types: set[str]) -> float:
        state = self._owner.state
        lanes = {state.lane_of(job_type) for job_type in types}
        intervals = [state.lanes[name].poll_interval_ms for name in lanes if name in state.lanes]
        return min(intervals, default=5000) / 1000
