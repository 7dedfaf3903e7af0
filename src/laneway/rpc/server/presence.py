"""Which workers are connected, told to the database in one statement for all, and what it knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import ClassVar, Final
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.overview import TOUCH_S
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.rpc.server.assignments import Assignments
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.store import remote, workers
from laneway.store.database import Database

LOOK_S: Final = 1.0
# A stream that has been full for so long may have given its results to another replica.
FULL_S: Final = 1.0
# A lease so old that no dispatcher knows was claimed for a stream that is no more.
STRAY_S: Final = 10.0


class Presence(Service):
    """Keeps the rows of connected workers, and the room of their streams, as the database has them.

    A stream learns here that a newer one of its worker has opened elsewhere, and that jobs of its
    worker have ended elsewhere.
    """

    name: ClassVar[str] = "presence"

    def __init__(
        self,
        database: Database,
        complaints: ThrottledWarnings,
        replica_id: UUID,
        dispatchers: Callable[[], Iterable[Dispatcher]],
        assignments: Assignments,
        on_ended: Callable[[list[Claim]], None],
        on_stray: Callable[[list[Claim]], None],
    ) -> None:
        super().__init__(complaints)
        self._database = database
        self._replica_id = replica_id
        self._dispatchers = dispatchers
        self._assignments = assignments
        self._on_ended = on_ended
        self._on_stray = on_stray
        self._leaving: list[tuple[UUID, UUID]] = []
        self._touch_at = 0.0
        self._look_at: dict[UUID, float] = {}

    def leave(self, worker_id: UUID, session: UUID) -> None:
        """This stream is over."""
        self._leaving.append((worker_id, session))
        self.wake()

    def touch_now(self) -> None:
        self._touch_at = 0.0
        self.wake()

    async def run_once(self) -> float | None:
        await self._say_goodbye()
        present = list(self._dispatchers())
        for dispatcher in present:
            dispatcher.release_stale()
        now = time.monotonic()
        if now >= self._touch_at:
            await self._database.run(workers.touch(self._replica_id))
            await self._look(present)
            self._touch_at = now + TOUCH_S
            self._look_at.clear()
        elif suspects := [one for one in present if self._is_suspect(one, now)]:
            await self._look(suspects)
        return LOOK_S if present else TOUCH_S

    def _is_suspect(self, dispatcher: Dispatcher, now: float) -> bool:
        """Full for long, or silent; looked at less and less often, for it may well be just busy."""
        since = now if dispatcher.silence.is_on else dispatcher.full_since
        if since is None or (now - since < FULL_S and not dispatcher.silence.is_on):
            return False
        if now < self._look_at.get(dispatcher.session, 0.0):
            return False
        self._look_at[dispatcher.session] = now + min(TOUCH_S, max(FULL_S, 2 * (now - since)))
        return True

    async def _say_goodbye(self) -> None:
        leaving, self._leaving = self._leaving, []
        if leaving:
            try:
                await self._database.run(remote.stop(leaving))
            except BaseException:
                self._leaving[:0] = leaving
                raise

    async def _look(self, present: list[Dispatcher]) -> None:
        by_id = {one.worker_id: one for one in present}
        if not by_id:
            return
        streams = [(one.worker_id, one.session) for one in present]
        doubtful: list[Dispatcher] = []
        memory = [one.memory_bytes for one in present]
        rooms, news = zip(*(one.room.published() for one in present), strict=True)
        for seen in await self._database.run(remote.touch(streams, memory, rooms, news)):
            dispatcher = by_id[seen.worker_id]
            if not seen.is_current:
                dispatcher.give_way()
                continue
            dispatcher.drain(seen.is_drained)
            if seen.running != dispatcher.room.in_use or dispatcher.silence.is_on:
                doubtful.append(dispatcher)
        if doubtful:
            await self._reconcile(doubtful)

    async def _reconcile(self, doubtful: list[Dispatcher]) -> None:
        """Room of attempts that are over is free; leases that no stream brought are given back."""
        mine = set(doubtful)
        # Known before the question: whatever is claimed meanwhile is no part of it.
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
