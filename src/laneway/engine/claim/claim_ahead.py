"""Jobs claimed ahead: those that a worker holds before it has room to start them.

While handlers end at once, a worker that claims only what it has room for spends its time on round
trips. So it claims the next jobs of such a lane early. They wait here in the order of their claims,
take room as it becomes free, and start. Running handlers never exceed the room.

A job waits here for at most KEEP_S; then all go back to the queue, uncharged, for other workers.
The worker claims ahead no more than its handlers end within AHEAD_S, by their measured time, and
only jobs that hold nothing but a slot of an unbounded lane.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from laneway.domain.claim import Claim
from laneway.engine.claim.capacity import MAX_CLAIM, Capacity
from laneway.engine.run.executor import Executor
from laneway.store.leases import Assignment

AHEAD_S: Final = 0.05
KEEP_S: Final = 0.5
# So many handlers of a lane must have ended at once, one after the other.
ENOUGH: Final = 200
# The time without claims ahead after jobs had to go back, doubled each time.
PAUSE_S: Final = (5.0, 300.0)
KIND: Final = "async"
# The most jobs that a server is allowed to send ahead, with those whose results are under way.
MOST_SENT: Final = 2 * MAX_CLAIM
# A call with results may name as many lanes.
MOST_LANES: Final = 100


@dataclass(slots=True)
class HandlerPace:
    """The measured time of the handlers of one lane that end without waiting."""

    in_a_row: int = 0
    each_s: float = 0.0
    paused_until: float = 0.0
    pause_s: float = PAUSE_S[0]

    def note(self, count: int, took_s: float) -> None:
        each_s = took_s / count
        # Slower ones count at once, quicker ones by and by.
        self.each_s = max(each_s, 0.7 * self.each_s + 0.3 * each_s)
        self.in_a_row += count

    def pause(self, now: float) -> None:
        self.in_a_row = 0
        self.paused_until = now + self.pause_s
        self.pause_s = min(PAUSE_S[1], 2 * self.pause_s)


class ClaimedBatch(NamedTuple):
    """Jobs of one claim that wait for room."""

    lane: str
    jobs: deque[Assignment]
    claimed_at: float
    timeouts: Mapping[Claim, float] | None


class ClaimAhead:
    """The jobs that one worker has claimed ahead, and how many more it may claim."""

    def __init__(
        self,
        capacity: Capacity,
        executor: Executor,
        give_back: Callable[[Sequence[Assignment]], None],
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most`: jobs held and running together, where a user has set that."""
        self._capacity = capacity
        self._executor = executor
        executor.inline_tasks.pace = self
        self._give_back = give_back
        self._most = most
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._paces: dict[str, HandlerPace] = {}
        self._batches: deque[ClaimedBatch] = deque()
        self._stopped: dict[tuple[int, int], str] = {}
        # Room that a claim under way was promised.
        self._promised = 0
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self.held = 0

    # Measured by the executor -------------------------------------------------------------------

    def ended_at_once(self, lane: str, count: int, took_s: float) -> None:
        """Note handlers that ended without waiting, one after the other."""
        self._pace(lane).note(count, took_s)

    def waited(self, lane: str) -> None:
        """Note a handler that waits: the lane may not claim ahead until many end at once again."""
        self._pace(lane).in_a_row = 0

    def _pace(self, lane: str) -> HandlerPace:
        pace = self._paces.get(lane)
        if pace is None:
            pace = self._paces[lane] = HandlerPace()
        return pace

    # Claiming -----------------------------------------------------------------------------------

    def room(self, lane: str) -> int | None:
        """Jobs that the lane may claim ahead now; None: it claims only what it has room for."""
        if not self._is_quick(lane):
            # Its jobs that wait here come first.
            return 0 if self._has_waiting(lane) else None
        target = self._target(lane)
        if target is None:
            return None
        if 2 * self.held <= target:
            return max(0, target - self.held)
        if self._most is None and not self._has_waiting(lane):
            # Jobs of other lanes wait here: they must not keep this lane from its place.
            return None
        return 0

    def targets(self, unsettled: int = 0) -> dict[str, int]:
        """By lane: the most jobs that may wait here now, for a server that claims them.

        The server still counts `unsettled` jobs, which take no room here. They are added as far as
        the jobs would not have to go back if all came at once.
        """
        found: dict[str, int] = {}
        for lane in self._paces:
            target = self._target(lane) if self._is_quick(lane) else None
            if target:
                soon = int(KEEP_S / 2 / max(self._pace(lane).each_s, 1e-6))
                found[lane] = min(target + unsettled, MOST_SENT, max(target, soon))
        largest = sorted(found.items(), key=itemgetter(1), reverse=True)
        return dict(largest[:MOST_LANES])

    def _has_waiting(self, lane: str) -> bool:
        return any(batch.lane == lane for batch in self._batches)

    def _is_quick(self, lane: str) -> bool:
        pace = self._pace(lane)
        return pace.in_a_row >= ENOUGH and self._clock() >= pace.paused_until

    def _target(self, lane: str) -> int | None:
        # Each handler that waits has a task.
        is_crowded = 2 * len(self._executor.inline_tasks.tasks) > self._capacity.sizes[KIND]
        if is_crowded or not self._capacity.is_open:
            return None
        most = MAX_CLAIM if self._most is None else self._most - self._capacity.used(KIND)
        return min(most, max(1, int(AHEAD_S / max(self._pace(lane).each_s, 1e-6))))

    @contextmanager
    def promised(self, room: int) -> Iterator[None]:
        """Keep room free for a claim under way."""
        self._promised = room
        try:
            yield
        finally:
            self._promised = 0
            if room:
                self.feed_soon()

    def refuse(self, lane: str) -> None:
        """Claim nothing ahead in this lane for a while."""
        self._pace(lane).pause(self._clock())

    def put(
        self,
        lane: str,
        jobs: Sequence[Assignment],
        timeouts: Mapping[Claim, float] | None = None,
    ) -> None:
        """Start jobs claimed ahead as soon as there is room; suspects go back.

        `timeouts` are those of the server that sent the jobs.
        """
        suspects = [job for job in jobs if job.losses]
        if suspects:
            self.refuse(lane)
            self._give_back(suspects)
            jobs = [job for job in jobs if not job.losses]
        if jobs:
            self._batches.append(ClaimedBatch(lane, deque(jobs), self._clock(), timeouts))
            self.held += len(jobs)
            self.feed()

    def stop(self, seq: int, attempt: int, answer: str) -> None:
        """Stop a job that waits here before its handler is called."""
        if self.held and (seq, attempt) not in self._executor.active:
            self._stopped[seq, attempt] = answer

    # Starting -----------------------------------------------------------------------------------

    def feed_soon(self) -> None:
        """Feed after the handlers that the event loop runs now: many of them end together."""
        if self._batches and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self.feed)

    def feed(self) -> None:
        """Start as many jobs as there is room for; return them all if they have waited too long."""
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._batches:
            lane, jobs, claimed_at, timeouts = self._batches[0]
            left_s = claimed_at + KEEP_S - self._clock()
            if left_s <= 0:
                for one in {batch.lane for batch in self._batches}:
                    self.refuse(one)
                return self.return_all()
            room = min(self._capacity.free(lane, KIND) - self._promised, len(jobs))
            if room < 1:
                self._timer = self._loop.call_later(left_s, self.feed)
                return
            part = [jobs.popleft() for _ in range(room)]
            if not jobs:
                self._batches.popleft()
            self.held -= room
            self._capacity.take(lane, KIND, room)
            self._executor.start(part, lane, timeouts)
            if self._stopped:
                self._stop_started(part)

    def _stop_started(self, jobs: Sequence[Assignment]) -> None:
        # Their handlers are called in the loop's next iteration.
        for job in jobs:
            pair = job.claim.seq, job.claim.attempt
            answer = self._stopped.pop(pair, None)
            if answer is not None:
                self._executor.stop_by_claim(*pair, answer)
        if not self.held:
            self._stopped.clear()

    def return_all(self) -> None:
        """Give all waiting jobs back to the queue: none of their handlers was called."""
        jobs = [job for batch in self._batches for job in batch.jobs]
        self._batches.clear()
        self._stopped.clear()
        self.held = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if jobs:
            self._give_back(jobs)
