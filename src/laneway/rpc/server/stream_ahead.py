"""Claims of one stream ahead of its worker's room, as far as the worker allows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from laneway.engine.lease.completer import Completer
from laneway.rpc.server.liveness import Liveness
from laneway.rpc.server.stream_capacity import StreamCapacity
from laneway.store.leases import Assignment, Verdict


class AheadStream(Protocol):
    """The stream that the jobs are claimed for."""

    @property
    def room(self) -> StreamCapacity: ...

    @property
    def liveness(self) -> Liveness: ...


class StreamAhead:
    """The jobs that one stream claims before its worker has room for them.

    The worker decides how many, by the time that its handlers take, and keeps them in order.
    """

    def __init__(
        self,
        stream: AheadStream,
        completer: Completer,
        start: Callable[[Sequence[Assignment], str], None],
    ) -> None:
        self._stream = stream
        self._room = stream.room
        self._completer = completer
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
        """Send jobs claimed ahead; suspects go back.

        Were one the cause of its loss, it would take all jobs ahead along again.
        """
        suspects = [one.claim for one in jobs if one.losses]
        if suspects:
            self.refuse(lane)
            # Its worker never gets them.
            self._stream.liveness.ended(*suspects)
            for claim in suspects:
                self._completer.add(Verdict(claim, "release"))
            jobs = [one for one in jobs if not one.losses]
        if jobs:
            self._room.take_ahead(lane, len(jobs))
            self._start(jobs, lane)
