"""Claims jobs of one lane, as many as there is room for, whenever there may be work."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import ClassVar, Protocol
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.engine.claim.capacity import MAX_CLAIM, Room
from laneway.engine.claim.floors import Floors, all_ranges
from laneway.engine.lease.completer import Completer
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.store.database import Database
from laneway.store.lanes import find_horizon
from laneway.store.leases import Assignment, ClaimAnswer, Verdict, claim, park
from laneway.store.statement import Statement

GROUPS = ("async", "thread", "process")
FEW = 10
MAX_UNSETTLED = 5000
MAX_PARKED = 1000
BUSY_FOR_S = 5.0
HELD_UP_S = 1.0
NOT_READY_S = 0.05


class Claimable(Protocol):
    """A job type or its analysis, and the isolation that its jobs need."""

    @property
    def job_type(self) -> str: ...

    @property
    def isolation(self) -> str: ...


class Starter(Protocol):
    """Starts claimed jobs, whose room is already taken."""

    def start(self, assignments: Sequence[Assignment], lane: str) -> None: ...


class Renewer(Protocol):
    """Renews the leases of claimed jobs."""

    @property
    def is_ready(self) -> bool: ...

    def hold(self, claims: list[Claim], lease_s: float, age_s: float) -> None: ...


class Ahead(Protocol):
    """Jobs that a worker claims before it has room to start them."""

    def room(self, lane: str) -> int | None:
        """Jobs that the lane may claim ahead now; None: it claims only what it has room for."""
        ...

    def promised(self, room: int) -> AbstractContextManager[None]: ...

    def refuse(self, lane: str) -> None: ...

    def put(self, lane: str, jobs: Sequence[Assignment]) -> None: ...


class NothingAhead:
    """Claims only what there is room for."""

    def room(self, lane: str) -> int | None:
        return None

    def promised(self, room: int) -> AbstractContextManager[None]:
        return nullcontext()

    def refuse(self, lane: str) -> None: ...

    def put(self, lane: str, jobs: Sequence[Assignment]) -> None:
        raise AssertionError("nothing is claimed ahead")


@dataclass(frozen=True, slots=True)
class LaneTools:
    """The objects that all lane loops of a worker share."""

    worker_id: UUID
    database: Database
    capacity: Room
    executor: Starter
    completer: Completer
    heartbeat: Renewer
    version: Callable[[], int]
    refresh: Callable[[], Awaitable[None]]
    wake_peers: Callable[[set[str]], None]
    # Lanes share room: only one at a time reads and takes it.
    claiming: asyncio.Lock
    metrics: WorkerMetrics
    is_drained: Callable[[], bool]
    claim: Callable[..., Statement[ClaimAnswer]] = claim
    ahead: Ahead = field(default_factory=NothingAhead)


class LaneLoop(Service):
    """Runs one claim per round; a full claim is followed by another at once."""

    name: ClassVar[str] = "claimer"

    def __init__(
        self,
        lane: str,
        handlers: Sequence[Claimable],
        tools: LaneTools,
        warnings: LogThrottle,
    ) -> None:
        super().__init__(warnings)
        self.lane = lane
        self._tools = tools
        self.floors = Floors()
        self._counted_since = self._looked_past_at = time.monotonic()
        self.handlers = handlers
        self._most = MAX_CLAIM
        # Slots or limits are used up: claim again when this worker frees some.
        self.is_full = False
        # The room of some isolation is used up: claim again when a job here ends.
        self.wants_work = False
        # The claim under way is for jobs that may have to wait for room.
        self._is_ahead = False

    @property
    def job_types(self) -> set[str]:
        return {handler.job_type for handler in self.handlers}

    def serve(self, handlers: Sequence[Claimable]) -> None:
        """Replace the handlers of this lane."""
        if {h.job_type for h in handlers} != self.job_types:
            self.handlers = handlers
            self.floors.forget()
        self.wake()

    async def run_once(self) -> float | None:
        if not self._tools.heartbeat.is_ready:
            # Leases claimed now would not be renewed.
            return NOT_READY_S
        if self._tools.completer.backlog > MAX_UNSETTLED:
            # Jobs end faster than their outcomes are stored, and still hold slots and leases.
            return NOT_READY_S
        async with self._tools.claiming:
            if self._tools.is_drained():
                return None
            return await self._claim()

    async def _claim(self) -> float | None:
        caps = [self._tools.capacity.free(self.lane, kind) for kind in GROUPS]
        ahead = self._tools.ahead.room(self.lane)
        if ahead is not None:
            caps[0] = ahead
        self._is_ahead = ahead is not None
        with self._tools.ahead.promised(0 if self._is_ahead else caps[0]):
            return await self._claim_up_to(caps)

    async def _claim_up_to(self, caps: list[int]) -> float | None:
        types = [
            (handler.job_type, group)
            for handler in self.handlers
            if caps[(group := GROUPS.index(handler.isolation) + 1) - 1] > 0
        ]
        self.wants_work = len(types) < len(self.handlers)
        if not types:
            return None
        groups = {group for _, group in types}
        room = min(self._tools.capacity.most(self.lane), sum(caps[group - 1] for group in groups))
        room = min(room, self._most)
        # A copy: `serve` may replace the handlers before the answer comes.
        isolations = {handler.job_type: handler.isolation for handler in self.handlers}
        self._reset_busy_count_if_old()
        await self._look_past_open_transactions()
        asked = time.monotonic()
        answer = await self._run_claim(
            self._tools.claim(
                self._tools.worker_id,
                self.lane,
                self._tools.version(),
                room,
                all_ranges(self.floors, types),
                caps,
                self.floors.busy,
                origins=self._tools.metrics.wants_origins,
                **({"plain": True} if self._is_ahead else {}),
            ),
            room,
        )
        age_s = time.monotonic() - asked
        names = {job_type for job_type, _ in types}
        delay = await self._apply(answer, age_s, room, names, isolations)
        if delay is not None or answer.state != "ok":
            return delay if delay is not None else answer.wait_s
        # Fewer jobs than room. If they used up an isolation, the claim skipped its other jobs.
        taken = Counter(isolations[one.job_type] for one in answer.assignments)
        is_used_up = any(count >= caps[GROUPS.index(kind)] for kind, count in taken.items())
        return 0 if is_used_up else answer.wait_s

    async def _run_claim(self, claim: Statement[ClaimAnswer], room: int) -> ClaimAnswer:
        try:
            answer = await self._tools.database.run(claim)
        except Exception:
            # Claim fewer next time: PostgreSQL cannot return a gigabyte of payloads.
            self._most = max(1, room // 4)
            raise
        self._most = min(MAX_CLAIM, 2 * self._most)
        return answer

    async def _apply(
        self,
        answer: ClaimAnswer,
        age_s: float,
        room: int,
        types: set[str],
        isolations: Mapping[str, str],
    ) -> float | None:
        self.is_full = answer.limited or answer.state == "full"
        if answer.state == "changed":
            await self._tools.refresh()
            return 0
        if answer.state != "ok":
            return None
        if answer.refused:
            self._tools.ahead.refuse(self.lane)
            if not answer.own_xid:
                return 0
        self.floors.learn(answer)
        if answer.assignments:
            self._take(answer, age_s, isolations)
            if len(answer.assignments) <= FEW:
                # Start a few jobs before the next claim is sent; many can start during it.
                await asyncio.sleep(0)
        if answer.left_over and (len(answer.assignments) >= room or answer.limited):
            # This claim hid the rows that it locked and left from other workers.
            self._tools.wake_peers(types)
        if answer.parked > len(answer.assignments):
            # Park all such jobs at once: the next ones would fill the coming claims too.
            await self._tools.database.run(park(sorted(types), MAX_PARKED))
        return 0 if answer.more else None

    def _take(self, answer: ClaimAnswer, age_s: float, isolations: Mapping[str, str]) -> None:
        claims = [one.claim for one in answer.assignments]
        if self._is_stopping or age_s >= answer.lease_s:
            # The loop stops, or the answer came so late that the leases may have lapsed.
            for one in claims:
                self._tools.completer.add(Verdict(one, "release"))
            return
        self._tools.heartbeat.hold(claims, answer.lease_s, age_s)
        jobs = answer.assignments
        if self._is_ahead:
            waiting = [one for one in jobs if isolations[one.job_type] == GROUPS[0]]
            jobs = [one for one in jobs if isolations[one.job_type] != GROUPS[0]]
            self._tools.ahead.put(self.lane, waiting)
        for kind, count in Counter(isolations[one.job_type] for one in jobs).items():
            self._tools.capacity.take(self.lane, kind, count)
        if jobs:
            self._tools.executor.start(jobs, self.lane)
        # Last: nothing may come between a claim and its start.
        self._tools.metrics.claimed(self.lane, answer.assignments)

    def _reset_busy_count_if_old(self) -> None:
        now = time.monotonic()
        if now - self._counted_since > BUSY_FOR_S:
            self._counted_since = now
            self.floors.forget_recent()

    async def _look_past_open_transactions(self) -> None:
        now = time.monotonic()
        if self.floors.are_held_up and now - self._looked_past_at > HELD_UP_S:
            self._looked_past_at = now
            self.floors.look_past(await self._tools.database.run(find_horizon()))
