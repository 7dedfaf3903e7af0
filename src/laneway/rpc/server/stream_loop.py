"""Claims in one lane for one stream, when it is its turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from laneway.engine.claim.capacity import MOST
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.lane_loop import BUSY_FOR_S, Claimable, LaneLoop, LaneTools
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.errors import LanewayError
from laneway.rpc.server.claim_size import ClaimSize
from laneway.rpc.server.round_robin import RoundRobin
from laneway.rpc.server.stream_capacity import StreamCapacity
from laneway.store.leases import ClaimAnswer


class LaneFloors(Floors):
    """Where the live rows of a lane's job types begin, as all claims of a replica have learned.

    And how many of them the next one may bring.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counted_since = time.monotonic()
        self.portion = ClaimSize()


class LoopStream(Protocol):
    """What the loops of a stream know of it."""

    @property
    def takes_jobs(self) -> bool:
        """Whether its worker is to be sent anything now."""
        ...

    def give_way(self) -> None:
        """Its worker has a newer stream."""
        ...


class StreamLoop(LaneLoop):
    """One call is one claim, and what it finds out is told to the rotation."""

    name: ClassVar[str] = "dispatcher"

    def __init__(
        self,
        lane: str,
        handlers: Sequence[Claimable],
        tools: LaneTools,
        complaints: ThrottledWarnings,
        *,
        stream: LoopStream,
        room: StreamCapacity,
        rotation: RoundRobin,
        floors: LaneFloors,
    ) -> None:
        super().__init__(lane, handlers, tools, complaints)
        self._stream = stream
        self._room = room
        self._rotation = rotation
        self.floors = self._lane_floors = floors
        self._portion = floors.portion
        # What it was called for; what it is at.
        self._share: int | None = None
        self._asked = MOST
        self._answer: ClaimAnswer | None = None
        self._tried: set[str] = set()
        self._has_failed = False

    # For the rotation -------------------------------------------------------------------------

    def wants(self, job_types: set[str]) -> bool:
        if not self._stream.takes_jobs or self._is_stopping:
            return False
        kinds = {one.isolation for one in self.handlers if one.job_type in job_types}
        return any(self._room.free(self.lane, kind) > 0 for kind in kinds)

    @property
    def is_ripe(self) -> bool:
        return self._room.in_use * 2 <= self._room.total

    @property
    def room(self) -> int:
        return self._room.left(self.lane)

    def call(self, share: int) -> None:
        self._share = share
        self.wake()

    # Claiming ---------------------------------------------------------------------------------

    def serve(self, handlers: Sequence[Claimable]) -> None:
        """Takes over a changed set of handlers; whether there is work for them is told apart."""
        if {one.job_type for one in handlers} != self.job_types:
            self.handlers = handlers
            self.floors.forget()

    async def run_once(self) -> float | None:
        if self._share is None:
            return None
        self._asked, self._share = self._share, None
        self._answer = None
        try:
            delay = await super().run_once()
        except Exception as error:
            # The stream stays, and somebody tries again.
            is_known = isinstance(error, LanewayError)
            self._warnings.warn(self.name, error if is_known else repr(error))
            self._has_failed = True
            self._portion.shrink()
            self._rotation.failed(self)
            return None
        if self._has_failed:
            self._has_failed = False
            self._warnings.resolved(self.name)
        self._tell(delay)
        return None

    def _tell(self, delay_s: float | None) -> None:
        answer = self._answer
        if answer is None or answer.state == "replaced":
            # No room after all, or too much is waiting to be settled: then not at once.
            self._rotation.done(self, tried=None, wait_s=delay_s)
            return
        self._rotation.done(
            self,
            tried=self._tried,
            goes_on=delay_s == 0,
            is_blocked=self.is_full,
            wait_s=delay_s or None,
        )

    async def _claim(self) -> float | None:
        # Under the lock: the lanes of a stream share its room.
        self._room.share = min(self._asked, self._portion.most)
        return await super()._claim()

    async def _apply(
        self,
        answer: ClaimAnswer,
        age_s: float,
        room: int,
        types: set[str],
        isolations: Mapping[str, str],
    ) -> float | None:
        self._answer, self._tried = answer, types
        self._portion.learn(answer.assignments)
        if answer.state == "replaced":
            self._stream.give_way()
        return await super()._apply(answer, age_s, room, types, isolations)

    def _reset_busy_count_if_old(self) -> None:
        now = time.monotonic()
        if now - self._lane_floors.counted_since > BUSY_FOR_S:
            self._lane_floors.counted_since = now
            self._lane_floors.forget_recent()
