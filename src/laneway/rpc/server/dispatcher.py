"""One remote stream: claims as many jobs as its worker has room for, and sends them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Literal
from uuid import UUID, uuid4

from laneway.domain.approval import analysed_type, is_analysis
from laneway.domain.claim import Claim
from laneway.engine.claim.lane_loop import LaneTools
from laneway.engine.claim.lane_routing import served
from laneway.engine.run.attempt_outcomes import of_changed_since_approval
from laneway.errors import DatabaseUnavailable
from laneway.observability.safe_logger import SafeLogger
from laneway.rpc.server.assignment_queue import (
    MAX_BYTES,
    AssignmentQueue,
    Beat,
    OutAssignment,
    QueuedAssignment,
    of_too_large,
    size_of,
    split,
)
from laneway.rpc.server.assignments import Assigned
from laneway.rpc.server.handshake import ClaimableType, StreamHandshake
from laneway.rpc.server.liveness import Liveness
from laneway.rpc.server.registration import IgnoredParts
from laneway.rpc.server.resources import DispatchResources
from laneway.rpc.server.stream_ahead import StreamAhead
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.rpc.server.stream_capacity import StreamCapacity
from laneway.rpc.server.stream_loop import LaneFloors, StreamLoop
from laneway.store.lanes import ControlState
from laneway.store.leases import Assignment, Verdict, claim
from laneway.store.remote import FinishedSteps, Lease, read_steps

log = SafeLogger("laneway")

End = Literal["replaced", "stopping", "closed"]

RETRY_S: Final = 0.2
STOP_S: Final = 2.0
_NONE: Final = FinishedSteps(0, [])


class Dispatcher:
    """One worker's stream, from its handshake to its end."""

    def __init__(
        self,
        handshake: StreamHandshake,
        caller: StreamCaller,
        shared: DispatchResources,
        on_close: Callable[[Dispatcher], None],
    ) -> None:
        self.stream_id: UUID = uuid4()
        self.worker_id = handshake.worker_id
        self.principal_id = caller.principal_id
        self.name = handshake.name
        self._caller = caller
        self._shared = shared
        self._timeouts_ms: dict[str, int] = {}
        self._on_close = on_close
        self._types = handshake.claimable_types()
        self._isolations = {one.job_type: one.isolation for one in self._types}
        self.room = StreamCapacity(
            handshake.max_in_flight,
            {
                "async": handshake.max_async,
                "thread": handshake.max_threads,
                "process": handshake.max_processes,
            },
        )
        self._queue = AssignmentQueue()
        self._parts: deque[list[OutAssignment]] = deque()
        # When too little is left of a lease in the message that is being sent.
        self._stale_at = 0.0
        self._loops: dict[str, StreamLoop] = {}
        self._joined: set[str] = set()
        self._lease = (0.0, 0.0)
        self.liveness = Liveness()
        self._closing: asyncio.Task[None] | None = None
        self.memory_bytes = handshake.memory_bytes
        self.is_drained = False
        # Job types of the worker that its token did not cover at the handshake.
        self.uncovered: list[str] = []
        # Parts of the worker's declarations that are not in force, by job type.
        self.ignored: dict[str, IgnoredParts] = {}
        # The reason why `batches` ends: replaced → ABORTED, stopping → UNAVAILABLE.
        self.end: End | None = None
        # Since when the stream has been full; None: it has room.
        self.full_since: float | None = None

    def take_timeouts(self, timeouts: Mapping[str, float | None]) -> None:
        """Sets the published timeouts of handlers, in seconds by job type."""
        self._timeouts_ms = {name: int(s * 1000) for name, s in timeouts.items() if s is not None}

    # Lanes and job types ----------------------------------------------------------------------

    @property
    def job_types(self) -> set[str]:
        return {one for lane in self._joined for one in self._loops[lane].job_types}

    @property
    def lanes(self) -> set[str]:
        return set(self._joined)

    @property
    def token_expires_in_ms(self) -> int | None:
        return self._caller.expires_in_ms

    def update_caller(self, caller: StreamCaller) -> None:
        """Applies the changed permissions or the expiry of its token."""
        if caller.expires_in_ms not in (None, self.token_expires_in_ms):
            self._queue.beat()
        self._caller = caller
        self.serve(self._shared.state())
        self._shared.round_robin.wake(self.job_types)

    def serve(self, state: ControlState) -> None:
        """Serves the current lanes, as far as its token covers them."""
        if self.end is not None:
            return
        mine = served(state, self._covered_types(), self._caller.lanes)
        self.room.serve({lane: {one.isolation for one in ones} for lane, ones in mine.items()})
        round_robin = self._shared.round_robin
        for lane in self._joined - mine.keys():
            round_robin.leave(self._loops[lane])
            self._loops[lane].serve([])
        for lane, types in mine.items():
            if lane not in self._loops:
                self._loops[lane] = self._make_loop(lane, types)
                self._loops[lane].start()
            self._loops[lane].serve(types)
            if lane not in self._joined:
                round_robin.join(self._loops[lane])
        self._joined = set(mine)

    def _covered_types(self) -> list[ClaimableType]:
        types = self._caller.job_types
        if types is None:
            return self._types
        return [one for one in self._types if analysed_type(one.job_type) in types]

    def _make_loop(self, lane: str, types: Sequence[ClaimableType]) -> StreamLoop:
        shared = self._shared
        tools = LaneTools(
            worker_id=self.worker_id,
            database=shared.claims,
            capacity=self.room,
            executor=self,
            completer=shared.completer,
            heartbeat=self,
            version=lambda: shared.state().version,
            refresh=shared.refresh,
            wake_peers=shared.wake_peers,
            claiming=shared.claiming,
            metrics=shared.metrics,
            is_drained=lambda: self.is_drained or self.end is not None,
            claim=partial(claim, stream_id=self.stream_id),
            ahead=StreamAhead(self, shared.completer, partial(self.start, is_ahead=True)),
        )
        return StreamLoop(
            lane,
            types,
            tools,
            shared.warnings,
            stream=self,
            room=self.room,
            round_robin=shared.round_robin,
            floors=shared.floors.setdefault(lane, LaneFloors()),
        )

    @property
    def takes_jobs(self) -> bool:
        is_held_back = self.is_drained or self._queue.is_stuck or self.liveness.is_silent
        return self.end is None and not is_held_back and not self._queue.is_full

    def note_call(self) -> None:
        """Notes a call of its worker to this server."""
        if self.liveness.note_call():
            self._shared.round_robin.has_room()

    def renewed_elsewhere(self, ends: Mapping[Claim, float]) -> None:
        """Notes the ends of renewed leases of its worker, as read from the database."""
        if self.liveness.renewed_elsewhere(ends):
            self._shared.round_robin.has_room()

    def drain(self, is_drained: bool) -> None:
        """Stops or resumes claiming."""
        if is_drained == self.is_drained:
            return
        self.is_drained = is_drained
        if is_drained:
            log.info("remote worker %s is drained: it gets no more jobs", self.name)
        else:
            log.info("remote worker %s was resumed", self.name)
            self._shared.round_robin.wake(self.job_types)

    # Claimed jobs -----------------------------------------------------------------------------

    # Leases need no heartbeat here: the worker renews sent jobs, and unsent ones are released.
    is_ready: Final = True

    def hold(self, claims: list[Claim], lease_s: float, age_s: float) -> None:
        self._lease = lease_s, time.monotonic() - age_s
        self.liveness.hold(claims, *self._lease)

    def start(
        self, assignments: Sequence[Assignment], lane: str, *, is_ahead: bool = False
    ) -> None:
        """Queues claimed jobs; their room is already taken, or may be taken ahead."""
        lease_s, begun = self._lease
        queued = []
        for one in assignments:
            assigned = self._assign(one.claim, lane, one.job_type)
            if one.changed_since_approval:
                self._shared.completer.add(of_changed_since_approval(one.claim))
                continue
            timeout_ms = self._timeouts_ms.get(analysed_type(one.job_type), 0)
            of_job = assigned, one, lease_s, begun, timeout_ms, size_of(one), is_ahead
            queued.append(QueuedAssignment(*of_job))
        self._note_room()
        self._queue.put(queued)

    def adopt(self, leases: Iterable[Lease]) -> None:
        """Counts attempts from an earlier stream of its worker against its room."""
        for one in leases:
            assigned = self._assign(one.claim, one.lane, one.job_type)
            self.room.take(one.lane, assigned.isolation, 1)
        self._note_room()

    def keep(self, leases: Iterable[Lease], read_at: float) -> None:
        """Expects its worker to renew these leases, which it still holds."""
        for one in leases:
            renewed_at = read_at + one.left_s - one.lease_s
            self.liveness.hold([one.claim], one.lease_s, renewed_at)

    def _assign(self, claim: Claim, lane: str, job_type: str) -> Assigned:
        type_lane = lane
        if is_analysis(job_type):
            type_lane = self._shared.state().lane_of(analysed_type(job_type))
        isolation = self._isolations.get(job_type, "async")
        assigned = Assigned(str(claim.job_id), claim, type_lane, job_type, isolation, self, lane)
        self._shared.assignments.add(assigned)
        return assigned

    def ended(self, ones: Sequence[Assigned]) -> None:
        """Frees the room of ended attempts of its worker."""
        counts = Counter([(one.leased_in, one.isolation) for one in ones])
        for (lane, isolation), count in counts.items():
            self.room.release(lane, isolation, count)
        self._note_room()
        self.liveness.ended(*[one.claim for one in ones])

    def _note_room(self) -> None:
        if self.room.in_use < self.room.total:
            self.full_since = None
        elif self.full_since is None:
            self.full_since = time.monotonic()

    def beat(self) -> None:
        """Asks the worker for a Heartbeat, whose answer tells what changed."""
        self._queue.beat()

    # Sending ----------------------------------------------------------------------------------

    async def batches(self) -> AsyncIterator[list[OutAssignment] | Beat]:
        """Messages to send; ends when the stream is replaced or the replica stops."""
        while await self._queue.wait():
            if self._queue.take_beat():
                yield Beat(self.token_expires_in_ms)
            self._parts.extend(split(await self._prepare(self._queue.take())))
            if self._closing is not None:
                self._release_unsent()
            while self._parts:
                yield self._parts[0]
                # The message is sent only now; the stream may have ended meanwhile.
                if self._parts:
                    self._parts.popleft()
            if self._queue.sent():
                self._shared.round_robin.has_room()

    async def _prepare(self, queued: list[QueuedAssignment]) -> list[tuple[OutAssignment, int]]:
        """Assignments to send now, with sizes; the others are released or returned to the queue."""
        try:
            steps = await self._steps([x.assignment.claim for x in queued])
        except DatabaseUnavailable as error:
            self._shared.warnings.warn("steps", error)
            again = [one for one in queued if one.assignment.claim.attempt > 1]
            queued, steps = [one for one in queued if one.assignment.claim.attempt == 1], {}
            self._queue.put_back(again)
            if not queued:
                await asyncio.sleep(RETRY_S)
        except BaseException:
            self._queue.put_back(queued)
            if self._closing is not None:
                self._release_unsent()
            raise
        now = time.monotonic()
        ready, expired = [], []
        for place, item in enumerate(queued):
            claim = item.assignment.claim
            if item.is_stale(now):
                expired.append(claim)
                continue
            found = steps.get(claim.seq, _NONE)
            size = item.size + found.size
            if size > self._shared.max_bytes:
                self._shared.completer.add(of_too_large(claim, size, self._shared.max_bytes))
            elif found.size and not found.steps:
                # Send it and all behind it with the next message, to keep their order.
                self._queue.put_back(queued[place:])
                break
            else:
                ready.append((item.to_send(found.steps, now), size))
        self._release(expired)
        self._stale_at = min((item.stale_at for item in queued), default=0.0)
        return ready

    async def _steps(self, claims: Sequence[Claim]) -> dict[int, FinishedSteps]:
        seqs = [claim.seq for claim in claims if claim.attempt > 1]
        read = read_steps(seqs, MAX_BYTES, self._shared.max_bytes)
        return await self._shared.rest.run(read) if seqs else {}

    def _release(self, claims: Iterable[Claim]) -> None:
        for one in claims:
            self._shared.completer.add(Verdict(one, "release"))

    def _release_unsent(self) -> None:
        """Releases unsent jobs, also those being written: if they still arrive, they are fenced."""
        queued, parts = self._queue.take_all(), list(self._parts)
        self._parts.clear()
        self._release(one.assignment.claim for one in queued)
        self._release(one.claim for part in parts for one in part)
        types = {one.assignment.job_type for one in queued}
        types |= {one.queued_as for part in parts for one in part}
        if types:
            self._shared.wake_peers(types)

    def release_stale(self) -> None:
        """Releases jobs that the worker did not read in time."""
        self._release(one.assignment.claim for one in self._queue.take_stale())
        if self._parts and time.monotonic() > self._stale_at:
            self._release(one.claim for part in self._parts for one in part)
            self._parts.clear()

    # Ending -----------------------------------------------------------------------------------

    async def stop_claiming(self, end: End = "stopping") -> None:
        """Ends `batches` once all claimed jobs are sent."""
        self.end = self.end or end
        round_robin = self._shared.round_robin
        for lane in self._joined:
            round_robin.leave(self._loops[lane])
        self._joined.clear()
        loops = list(self._loops.values())
        if loops:
            stops = [asyncio.ensure_future(loop.stop()) for loop in loops]
            # Jobs of a claim that hangs lapse, and the watchdog takes them back.
            await asyncio.wait(stops, timeout=STOP_S)
            for loop in loops:
                await loop.cancel()
            await asyncio.gather(*stops, return_exceptions=True)
        self._queue.close()

    def mark_replaced(self) -> None:
        """Ends this stream without sending more, because its worker has a newer one."""
        self.end = self.end or "replaced"
        _ = self._begin_closing()

    async def replace(self) -> None:
        """Does `mark_replaced`, and returns once claiming has ended."""
        self.mark_replaced()
        await self.close()

    async def close(self) -> None:
        """Ends the stream and releases unsent jobs at once; may be called twice."""
        # The caller may be cancelled meanwhile.
        await asyncio.shield(self._begin_closing())

    def _begin_closing(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        return self._closing

    async def _close(self) -> None:
        self.end = self.end or "closed"
        self._release_unsent()
        await self.stop_claiming(self.end)
        self._release_unsent()
        self._on_close(self)
