"""Offers work to one dispatcher at a time, so that a hundred idle workers cost one claim.

After a claim that returns as many jobs as it asked for, the next loop with room claims. A claim
that returns fewer ends the round for its job types. Work that no loop has room for is remembered
until one has: a single place is not worth a claim, so room is collected for a moment first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from laneway.engine.claim.capacity import MAX_CLAIM

# The time for which room is collected; most of the worker's places stay in use meanwhile.
COLLECT_S = 0.02
RETRY_S = 1.0


class Loop(Protocol):
    """Claims in one lane for one stream."""

    lane: str

    def wants(self, job_types: set[str]) -> bool:
        """Whether it serves any of these types and has room for it."""
        ...

    @property
    def has_enough_room(self) -> bool:
        """Whether it has enough room to be worth a claim."""
        ...

    @property
    def room(self) -> int: ...

    @property
    def job_types(self) -> set[str]: ...

    def start_claim(self, share: int) -> None:
        """Claims up to `share` jobs, and then calls `done`."""
        ...


class _Round:
    """One pass through the loops of a lane, while there may be jobs of some types."""

    __slots__ = ("again", "factor", "loop", "types")

    def __init__(self, types: set[str], factor: int) -> None:
        self.types = types
        # Types announced since the current loop began to claim.
        self.again: set[str] = set()
        # The multiple of a fair share that a loop may take; grows while there is more.
        self.factor = factor
        self.loop: Loop | None = None


class RoundRobin:
    """Lets the loops of all streams of a replica claim in turn."""

    def __init__(self, lane_of: Callable[[str], str]) -> None:
        self._lane_of = lane_of
        self._loops: dict[str, deque[Loop]] = {}
        self._rounds: dict[str, _Round] = {}
        self._wanted: dict[str, set[str]] = {}
        self._blocked: dict[str, set[str]] = {}
        # Timers of lanes that collect room, and alarms of lanes to try again later.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._alarms: dict[str, tuple[asyncio.TimerHandle, set[str]]] = {}
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no loop claims."""
        return not self._rounds

    def join(self, loop: Loop) -> None:
        self._loops.setdefault(loop.lane, deque()).appendleft(loop)

    def leave(self, loop: Loop) -> None:
        loops = self._loops[loop.lane]
        loops.remove(loop)
        if not loops:
            del self._loops[loop.lane]
        round_ = self._rounds.get(loop.lane)
        if round_ is not None and round_.loop is loop:
            # Jobs that it claims meanwhile are released and announced again.
            self._next(loop.lane, round_, round_.types | round_.again, is_first=False)

    def close(self) -> None:
        self._is_closed = True
        for timer in (*self._timers.values(), *(alarm for alarm, _ in self._alarms.values())):
            timer.cancel()
        self._timers.clear()
        self._alarms.clear()

    # Wake-ups ---------------------------------------------------------------------------------

    def wake(self, job_types: Iterable[str]) -> None:
        """Starts claims, because there may be jobs of these types."""
        lanes: dict[str, set[str]] = {}
        for job_type in job_types:
            lanes.setdefault(self._lane_of(job_type), set()).add(job_type)
        for lane, types in lanes.items():
            self._wake_lane(lane, types)

    def wake_all(self) -> None:
        """Starts claims, because there may be jobs of any type."""
        for lane, loops in list(self._loops.items()):
            self._wake_lane(lane, {one for loop in loops for one in loop.job_types})

    def _wake_lane(self, lane: str, types: set[str]) -> None:
        if lane in self._wanted and lane in self._loops:
            # Room is already being collected for waiting jobs: these types join them.
            self._wanted[lane] |= types
            self._collect(lane)
        else:
            self._begin(lane, types, 1)

    def has_room(self) -> None:
        """Claims waiting jobs, because a worker has room again."""
        for lane in list(self._wanted):
            self._collect(lane)

    def has_slots(self) -> None:
        """Retries blocked types, because an ended job may have freed a slot or a limit."""
        blocked, self._blocked = self._blocked, {}
        for lane, types in blocked.items():
            self._begin(lane, types, MAX_CLAIM)

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
        """Continues the round after a claim of the `tried` types; None: it could not claim.

        `goes_on`: there may be more jobs of them. `is_blocked`: slots or limits are full.
        `wait_s`: claim again after this time.
        """
        round_ = self._rounds.get(loop.lane)
        if round_ is None or round_.loop is not loop:
            return
        types = round_.types
        if wait_s is not None:
            self._later(loop.lane, wait_s, types if tried is None else tried)
        if tried is None and wait_s is not None:
            types = set()
        elif goes_on:
            round_.factor = min(MAX_CLAIM, round_.factor * 2)
        elif tried is not None:
            types = types - tried
            if is_blocked:
                self._blocked.setdefault(loop.lane, set()).update(tried)
        self._next(loop.lane, round_, types | round_.again, is_first=False)

    def failed(self, loop: Loop) -> None:
        """Retries a failed claim later, with the next loop."""
        round_ = self._rounds.get(loop.lane)
        if round_ is not None and round_.loop is loop:
            del self._rounds[loop.lane]
            self._later(loop.lane, RETRY_S, round_.types | round_.again)

    def _begin(self, lane: str, types: set[str], factor: int) -> None:
        if lane not in self._loops or self._is_closed:
            return
        round_ = self._rounds.get(lane)
        if round_ is not None:
            round_.again |= types
            return
        self._next(lane, _Round(types, factor), types, is_first=True)

    def _next(self, lane: str, round_: _Round, types: set[str], *, is_first: bool) -> None:
        """Continues the round with the next loop that has room, or ends it.

        After the first claim more jobs wait than it asked for. From then on only a loop with
        enough room is worth a claim.
        """
        self._rounds.pop(lane, None)
        loops = self._loops.get(lane, ())
        wanting = [] if self._is_closed or not types else [x for x in loops if x.wants(types)]
        if not wanting or not (is_first or any(x.has_enough_room for x in wanting)):
            if left := {t for t in types if any(t in loop.job_types for loop in loops)}:
                self._wanted.setdefault(lane, set()).update(left)
                self._collect(lane)
            return
        round_.types, round_.again = types, set()
        # Loops that are collecting room come last.
        chosen = round_.loop = next((x for x in wanting if x.has_enough_room), wanting[0])
        self._rounds[lane] = round_
        queue = self._loops[lane]
        queue.remove(chosen)
        queue.append(chosen)
        share = -(-chosen.room // len(wanting)) * round_.factor
        # Ask for two at least: a claim that returns fewer than it asked for ends the round.
        chosen.start_claim(max(2, share))

    def _collect(self, lane: str) -> None:
        types = self._wanted[lane]
        wanting = [x for x in self._loops.get(lane, ()) if x.wants(types)]
        if any(x.has_enough_room for x in wanting):
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
            self._begin(lane, types, MAX_CLAIM)

    def _later(self, lane: str, delay_s: float, types: set[str]) -> None:
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        if lane in self._alarms:
            alarm, earlier = self._alarms.pop(lane)
            alarm.cancel()
            types, when = types | earlier, min(when, alarm.when())
        self._alarms[lane] = loop.call_at(when, self._on_alarm, lane), types

    def _on_alarm(self, lane: str) -> None:
        _, types = self._alarms.pop(lane)
        self._begin(lane, types, MAX_CLAIM)
