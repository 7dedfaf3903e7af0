"""The idle poll of a whole worker process: one cheap statement, however many lanes it serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from laneway.engine.complaints import Complaints
from laneway.engine.service import Service
from laneway.store.database import Database
from laneway.store.lanes import ControlState, peek


class Poller(Service):
    """Promotes delayed jobs, notices control changes, and wakes the lanes that have work."""

    name: ClassVar[str] = "poller"

    def __init__(
        self,
        database: Database,
        complaints: Complaints,
        job_types: Callable[[], list[str]],
        state: Callable[[], ControlState],
        refresh: Callable[[], Awaitable[None]],
        on_work: Callable[[set[str]], None],
        on_foreign_work: Callable[[set[str]], None],
    ) -> None:
        super().__init__(complaints)
        self._database = database
        self._job_types = job_types
        self._state = state
        self._refresh = refresh
        self._on_work = on_work
        self._on_foreign_work = on_foreign_work

    async def run_once(self) -> float | None:
        types = self._job_types()
        found = await self._database.run(peek(types))
        if found.version != self._state().version:
            await self._refresh()
        if found.due:
            self._on_work(set(found.due))
        if found.promoted:
            foreign = set(found.promoted) - set(types)
            if foreign:
                self._on_foreign_work(foreign)
        return min(self._interval_s(set(types)), _soon(found.next_due_s))

    def _interval_s(self, types: set[str]) -> float:
        state = self._state()
        lanes = {state.lane_of(job_type) for job_type in types}
        intervals = [state.lanes[name].poll_interval_ms for name in lanes if name in state.lanes]
        return min(intervals, default=5000) / 1000


def _soon(next_due_s: float | None) -> float:
    # The jitter of the loop may wake a little early: aim a little late.
    return float("inf") if next_due_s is None else max(0.005, next_due_s * 1.12 + 0.002)
