"""Keeps the database informed of connected workers, in one statement for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import ClassVar, Final
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.overview import TOUCH_S
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc.server.assignments import Assignments
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.store import remote, workers
from laneway.store.database import Database

CHECK_S: Final = 1.0
# A stream that is full for this long may have sent its results to another replica.
FULL_S: Final = 1.0
# A lease of this age without a dispatcher was claimed for a stream that has ended.
STRAY_S: Final = 10.0


class Presence(Service):
    """Updates the rows of connected workers, and corrects the room of their streams.

    It also finds streams whose worker has a newer one elsewhere, and jobs that ended elsewhere.
    """

    name: ClassVar[str] = "presence"

    def __init__(
        self,
        database: Database,
        warnings: LogThrottle,
        server_id: UUID,
        dispatchers: Callable[[], Iterable[Dispatcher]],
        assignments: Assignments,
        on_ended: Callable[[list[Claim]], None],
        on_stray: Callable[[list[Claim]], None],
    ) -> None:
        super().__init__(warnings)
        self._database = database
        self._server_id = server_id
        self._dispatchers = dispatchers
        self._assignments = assignments
        self._on_ended = on_ended
        self._on_stray = on_stray
        self._leaving: list[tuple[UUID, UUID]] = []
        self._touch_at = 0.0
        self._next_check_at: dict[UUID, float] = {}

    def leave(self, worker_id: UUID, stream_id: UUID) -> None:
        """Notes that a stream has ended."""
        self._leaving.append((worker_id, stream_id))
        self.wake()

    def touch_now(self) -> None:
        self._touch_at = 0.0
        self.wake()

    async def run_once(self) -> float | None:
        await self._stop_left()
        present = list(self._dispatchers())
        for dispatcher in present:
            dispatcher.release_stale()
        now = time.monotonic()
        if now >= self._touch_at:
            await self._database.run(workers.touch(self._server_id))
            await self._check(present)
            self._touch_at = now + TOUCH_S
            self._next_check_at.clear()
        elif suspects := [one for one in present if self._is_suspect(one, now)]:
            await self._check(suspects)
        return CHECK_S if present else TOUCH_S

    def _is_suspect(self, dispatcher: Dispatcher, now: float) -> bool:
        """Whether to check a stream that is full or silent; less and less often, it may be busy."""
        since = now if dispatcher.liveness.is_silent else dispatcher.full_since
        if since is None or (now - since < FULL_S and not dispatcher.liveness.is_silent):
            return False
        if now < self._next_check_at.get(dispatcher.stream_id, 0.0):
            return False
        self._next_check_at[dispatcher.stream_id] = now + min(
            TOUCH_S, max(FULL_S, 2 * (now - since))
        )
        return True

    async def _stop_left(self) -> None:
        leaving, self._leaving = self._leaving, []
        if leaving:
            try:
                await self._database.run(remote.stop(leaving))
            except BaseException:
                self._leaving[:0] = leaving
                raise

    async def _check(self, present: list[Dispatcher]) -> None:
        by_id = {one.worker_id: one for one in present}
        if not by_id:
            return
        streams = [(one.worker_id, one.stream_id) for one in present]
        doubtful: list[Dispatcher] = []
        memory = [one.memory_bytes for one in present]
        rooms, changed = zip(*(one.room.published() for one in present), strict=True)
        for found in await self._database.run(remote.touch(streams, memory, rooms, changed)):
            dispatcher = by_id[found.worker_id]
            if not found.is_current:
                dispatcher.mark_replaced()
                continue
            dispatcher.drain(found.is_drained)
            if found.running != dispatcher.room.in_use or dispatcher.liveness.is_silent:
                doubtful.append(dispatcher)
        if doubtful:
            await self._reconcile(doubtful)

    async def _reconcile(self, doubtful: list[Dispatcher]) -> None:
        """Frees the room of ended attempts, and releases leases that no stream received."""
        mine = set(doubtful)
        # Read before the query, to leave out attempts that are claimed meanwhile.
        known = {one.claim for one in self._assignments if one.dispatcher in mine}
        asked_at = time.monotonic()
        leases = await self._database.run(remote.read_leases([one.worker_id for one in doubtful]))
        running = {lease.claim for lease in leases}
        for dispatcher in doubtful:
            dispatcher.renewed_elsewhere(
                {
                    one.claim: asked_at + one.left_s
                    for one in leases
                    if one.worker_id == dispatcher.worker_id and one.is_renewed
                }
            )
        if ended := [claim for claim in known if claim not in running]:
            self._on_ended(ended)
        if stray := [one.claim for one in leases if one.age_s > STRAY_S and one.claim not in known]:
            self._on_stray([claim for claim in stray if not self._assignments.has(claim)])
