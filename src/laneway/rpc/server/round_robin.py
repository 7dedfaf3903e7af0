"""Tells of work one dispatcher at a time, so that a hundred idle workers cost one claim.

Whoever claimed as much as it asked for is followed by the next with room; whoever came up short
ends the round for the job types it asked for. What nobody has room for is remembered until somebody
has: a place at a time is not worth a claim, so room is collected for a moment first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from laneway.engine.claim.capacity import MOST

# How long room is collected: most of the worker's places are still taken meanwhile.
COLLECT_S = 0.02
RETRY_S = 1.0


class Loop(Protocol):
    """What claims in one lane for one stream."""

    lane: str

    def wants(self, job_types: set[str]) -> bool:
        """Whether it serves any of these and has room for it."""
        ...

    @property
    def is_ripe(self) -> bool:
        """Whether it has room enough to be worth a claim."""
        ...

    @property
    def room(self) -> int: ...

    @property
    def job_types(self) -> set[str]: ...

    def call(self, share: int) -> None:
        """It is to claim now, at most so many; it says `done` when it has."""
        ...


class _Round:
    """The way of one piece of news through the loops of a lane."""

    __slots__ = ("again", "factor", "loop", "types")

    def __init__(self, types: set[str], factor: int) -> None:
        self.types = types
        # Said since its loop began to claim.
        self.again: set[str] = set()
        # How much of a fair share a loop may take; grows while there is more.
        self.factor = factor
        self.loop: Loop | None = None


class RoundRobin:
    """The loops of all streams of a replica, in turn."""

    def __init__(self, lane_of: Callable[[str], str]) -> None:
        self._lane_of = lane_of
        self._loops: dict[str, deque[Loop]] = {}
        self._rounds: dict[str, _Round] = {}
        self._wanted: dict[str, set[str]] = {}
        self._blocked: dict[str, set[str]] = {}
        # Of lanes whose room is collected; of those that are looked at again later.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._alarms: dict[str, tuple[asyncio.TimerHandle, set[str]]] = {}
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nobody claims."""
        return not self._rounds

    def join(self, loop: Loop) -> None:
        self._loops.setdefault(loop.lane, deque()).appendleft(loop)

    def leave(self, loop: Loop) -> None:
        loops = self._loops[loop.lane]
        loops.remove(loop)
        if not loops:
            del self._loops[loop.lane]
        turn = self._rounds.get(loop.lane)
        if turn is not None and turn.loop is loop:
            # What it may have claimed meanwhile is given back and told anew.
            self._next(loop.lane, turn, turn.types | turn.again, is_first=False)

    def close(self) -> None:
        self._is_closed = True
        for timer in (*self._timers.values(), *(alarm for alarm, _ in self._alarms.values())):
            timer.cancel()
        self._timers.clear()
        self._alarms.clear()

    # News -------------------------------------------------------------------------------------

    def tell(self, job_types: Iterable[str]) -> None:
        """There may be jobs of these types."""
        lanes: dict[str, set[str]] = {}
        for job_type in job_types:
            lanes.setdefault(self._lane_of(job_type), set()).add(job_type)
        for lane, types in lanes.items():
            self._hear(lane, types)

    def tell_all(self) -> None:
        """There may be jobs of any type."""
        for lane, loops in list(self._loops.items()):
            self._hear(lane, {one for loop in loops for one in loop.job_types})

    def _hear(self, lane: str, types: set[str]) -> None:
        if lane in self._wanted and lane in self._loops:
            # More waits than there is room for: it goes with what room is being collected for.
            self._wanted[lane] |= types
            self._collect(lane)
        else:
            self._begin(lane, types, 1)

    def has_room(self) -> None:
        """Some worker has room again."""
        for lane in list(self._wanted):
            self._collect(lane)

    def has_slots(self) -> None:
        """Something ended: lanes and limits that were full may not be any more."""
        blocked, self._blocked = self._blocked, {}
        for lane, types in blocked.items():
            self._begin(lane, types, MOST)

    # Rounds -----------------------------------------------------------------------------------

    def done(
        self,
        loop: Loop,
        *,
        tried: set[str] | None,
        goes_on: bool = False,
        is_blocked: bool = False,
        wait_s: float | None = None,
    ) -> None:
        """What came of a call: the types it asked for; None: it could not ask.

        `goes_on`: there may be more of them; `is_blocked`: slots or limits are in the way;
        `wait_s`: ask again then.
        """
        turn = self._rounds.get(loop.lane)
        if turn is None or turn.loop is not loop:
            return
        types = turn.types
        if wait_s is not None:
            self._later(loop.lane, wait_s, types if tried is None else tried)
        if tried is None and wait_s is not None:
            types = set()
        elif goes_on:
            turn.factor = min(MOST, turn.factor * 2)
        elif tried is not None:
            types = types - tried
            if is_blocked:
                self._blocked.setdefault(loop.lane, set()).update(tried)
        self._next(loop.lane, turn, types | turn.again, is_first=False)

    def failed(self, loop: Loop) -> None:
        """The claim failed: to be tried again, by whoever is next."""
        turn = self._rounds.get(loop.lane)
        if turn is not None and turn.loop is loop:
            del self._rounds[loop.lane]
            self._later(loop.lane, RETRY_S, turn.types | turn.again)

    def _begin(self, lane: str, types: set[str], factor: int) -> None:
        if lane not in self._loops or self._is_closed:
            return
        turn = self._rounds.get(lane)
        if turn is not None:
            turn.again |= types
            return
        self._next(lane, _Round(types, factor), types, is_first=True)

    def _next(self, lane: str, turn: _Round, types: set[str], *, is_first: bool) -> None:
        """The round goes on with the next loop that has room, or it ends.

        After its first claim it is known that there is more than was asked for: from then on, what
        is worth a claim is only a loop with room enough.
        """
        self._rounds.pop(lane, None)
        loops = self._loops.get(lane, ())
        wanting = [] if self._is_closed or not types else [x for x in loops if x.wants(types)]
        if not wanting or not (is_first or any(x.is_ripe for x in wanting)):
            if left := {t for t in types if any(t in loop.job_types for loop in loops)}:
                self._wanted.setdefault(lane, set()).update(left)
                self._collect(lane)
            return
        turn.types, turn.again = types, set()
        # Those that are just collecting room come last.
        chosen = turn.loop = next((x for x in wanting if x.is_ripe), wanting[0])
        self._rounds[lane] = turn
        deck = self._loops[lane]
        deck.remove(chosen)
        deck.append(chosen)
        share = -(-chosen.room // len(wanting)) * turn.factor
        # Of one job, two are asked for: a claim that brings less than it asked for is the last.
        chosen.call(max(2, share))

    def _collect(self, lane: str) -> None:
        types = self._wanted[lane]
        wanting = [x for x in self._loops.get(lane, ()) if x.wants(types)]
        if any(x.is_ripe for x in wanting):
            self._claim_wanted(lane)
        elif wanting and lane not in self._timers and not self._is_closed:
            self._timers[lane] = asyncio.get_running_loop().call_later(
                COLLECT_S, self._claim_wanted, lane
            )

    def _claim_wanted(self, lane: str) -> None:
        timer = self._timers.pop(lane, None)
        if timer is not None:
            timer.cancel()
        if types := self._wanted.pop(lane, None):
            self._begin(lane, types, MOST)

    def _later(self, lane: str, delay_s: float, types: set[str]) -> None:
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        if lane in self._alarms:
            alarm, earlier = self._alarms.pop(lane)
            alarm.cancel()
            types, when = types | earlier, min(when, alarm.when())
        self._alarms[lane] = loop.call_at(when, self._ring, lane), types

    def _ring(self, lane: str) -> None:
        _, types = self._alarms.pop(lane)
        self._begin(lane, types, MOST)
