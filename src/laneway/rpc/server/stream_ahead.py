"""Claims of one stream ahead of its worker's room, as far as the worker allows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from laneway.rpc.server.stream_capacity import StreamCapacity
from laneway.store.leases import Assignment


class StreamAhead:
    """The jobs that one stream claims before its worker has room for them.

    The worker decides how many, by the time that its handlers take, and keeps them in order.
    """

    def __init__(
        self, room: StreamCapacity, start: Callable[[Sequence[Assignment], str], None]
    ) -> None:
        self._room = room
        self._start = start

    def room(self, lane: str) -> int | None:
        """Jobs that the lane may claim ahead now; None: it claims only what it has room for."""
        return self._room.ahead_left(lane)

    def promised(self, room: int) -> AbstractContextManager[None]:
        return nullcontext()

    def refuse(self, lane: str) -> None:
        """Claim nothing ahead in this lane for a while."""
        self._room.refuse_ahead(lane)

    def put(self, lane: str, jobs: Sequence[Assignment]) -> None:
        """Send jobs claimed ahead."""
        if jobs:
            self._room.take_ahead(lane, len(jobs))
            self._start(jobs, lane)
