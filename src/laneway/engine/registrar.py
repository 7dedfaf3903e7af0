"""Makes a worker process and its job types known, and keeps it so."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from laneway.config import Settings
from laneway.domain.lane import Lane
from laneway.engine.complaints import Complaints
from laneway.engine.registry import Registry
from laneway.engine.service import Service
from laneway.store import lanes
from laneway.store.database import Database
from laneway.store.workers import WorkerInfo, publish, register, stop, touch

TOUCH_S = 10.0


class Registrar(Service):
    """Tells operators that the process lives; leases say so for its jobs."""

    name: ClassVar[str] = "registrar"

    def __init__(self, database: Database, complaints: Complaints, worker: WorkerInfo) -> None:
        super().__init__(complaints)
        self._database = database
        self._worker = worker

    async def introduce(self, registry: Registry, settings: Settings) -> None:
        """Creates missing lanes, adopts job types that are in none, publishes, registers."""
        by = f"worker {self._worker.name}"
        state = await self._database.run(lanes.read())
        for lane in settings.lanes:
            if lane.name not in state.lanes:
                await self._database.run(lanes.create(replace(lane, job_types=()), by))
            for job_type in lane.job_types:
                # A row that has the type already wins.
                await self._database.run(lanes.adopt_type(lane.name, job_type, by))
        for handler in registry:
            if handler.lane is not None and state.lane_of(handler.job_type) != handler.lane:
                if handler.lane not in state.lanes:
                    await self._database.run(lanes.create(Lane(handler.lane), by))
                await self._database.run(lanes.adopt_type(handler.lane, handler.job_type, by))
        if len(registry):
            await self._database.run(publish([handler.record() for handler in registry]))
        await self._database.run(register(self._worker))

    async def run_once(self) -> float | None:
        await self._database.run(touch(self._worker.id))
        return TOUCH_S

    async def say_goodbye(self) -> None:
        await self._database.run(stop(self._worker.id))
