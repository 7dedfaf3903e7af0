"""Claims in one lane for one stream, when its turn comes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from laneway.engine.claim.capacity import MAX_CLAIM
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.lane_loop import BUSY_FOR_S, Claimable, LaneLoop, LaneTools
from laneway.errors import LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc.server.claim_size import ClaimSize
from laneway.rpc.server.round_robin import RoundRobin
from laneway.rpc.server.stream_capacity import AHEAD_KIND, StreamCapacity
from laneway.store.leases import ClaimAnswer


class LaneFloors(Floors):
    """The starts of the live rows of a lane's job types, shared by all claims of a replica.

    Also the size of the next claim.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counted_since = time.monotonic()
        self.claim_size = ClaimSize()


class LoopStream(Protocol):
    """The stream, as its loops use it."""

    @property
    def takes_jobs(self) -> bool:
        """Whether its worker may get jobs now."""
        ...

    def mark_replaced(self) -> None:
        """Ends the stream, because its worker has a newer one."""
        ...


class StreamLoop(LaneLoop):
    """Makes one claim per turn and reports its result to the round robin."""

    name: ClassVar[str] = "dispatcher"

    def __init__(
        self,
        lane: str,
        handlers: Sequence[Claimable],
        tools: LaneTools,
        warnings: LogThrottle,
        *,
        stream: LoopStream,
        room: StreamCapacity,
        round_robin: RoundRobin,
        floors: LaneFloors,
    ) -> None:
        super().__init__(lane, handlers, tools, warnings)
        self._stream = stream
        self._room = room
        self._round_robin = round_robin
        self.floors = self._lane_floors = floors
        self._claim_size = floors.claim_size
        # The share of the next claim; then the state of the current one.
        self._share: int | None = None
        self._asked = MAX_CLAIM
        self._answer: ClaimAnswer | None = None
        self._tried: set[str] = set()
        self._has_failed = False

    # For the round robin ----------------------------------------------------------------------

    def wants(self, job_types: set[str]) -> bool:
        if not self._stream.takes_jobs or self._is_stopping:
            return False
        kinds = {one.isolation for one in self.handlers if one.job_type in job_types}
        if AHEAD_KIND in kinds and self._room.ahead_left(self.lane):
            return True
        return any(self._room.free(self.lane, kind) > 0 for kind in kinds)

    @property
    def has_enough_room(self) -> bool:
        total = self._room.total + self._room.ahead(self.lane)
        return self._room.in_use * 2 <= total

    @property
    def room(self) -> int:
        return self._room.left(self.lane)

    def start_claim(self, share: int) -> None:
        self._share = share
        self.wake()

    # Claiming ---------------------------------------------------------------------------------

    def serve(self, handlers: Sequence[Claimable]) -> None:
        """Replaces the handlers; wake-ups for their work come separately."""
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
            # The stream stays open, and the next loop tries again.
            is_known = isinstance(error, LanewayError)
            self._warnings.warn(self.name, error if is_known else repr(error))
            self._has_failed = True
            self._claim_size.shrink()
            self._round_robin.failed(self)
            return None
        if self._has_failed:
            self._has_failed = False
            self._warnings.resolved(self.name)
        self._report(delay)
        return None

    def _report(self, delay_s: float | None) -> None:
        answer = self._answer
        if answer is None or answer.state == "replaced":
            # The stream is full, or too many results wait to be settled: try later.
            self._round_robin.done(self, tried=None, wait_s=delay_s)
            return
        self._round_robin.done(
            self,
            tried=self._tried,
            goes_on=delay_s == 0,
            is_blocked=self.is_full,
            wait_s=delay_s or None,
        )

    async def _claim(self) -> float | None:
        # Set under the lock: the lanes of a stream share its room.
        self._room.share = min(self._asked, self._claim_size.most)
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
        self._claim_size.learn(answer.assignments)
        if answer.state == "replaced":
            self._stream.mark_replaced()
        return await super()._apply(answer, age_s, room, types, isolations)

    def _reset_busy_count_if_old(self) -> None:
        now = time.monotonic()
        if now - self._lane_floors.counted_since > BUSY_FOR_S:
            self._lane_floors.counted_since = now
            self._lane_floors.forget_recent()
