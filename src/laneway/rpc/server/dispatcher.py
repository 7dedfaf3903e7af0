"""The loop of one remote stream: claims what its worker has room for, and sends it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Literal
from uuid import UUID, uuid4

from laneway.domain.approval import ANALYSIS_PREFIX
from laneway.domain.claim import Claim
from laneway.engine.claim.lane_loop import LaneTools
from laneway.engine.claim.lane_routing import served
from laneway.engine.run.attempt_outcomes import of_forged, own_error_json
from laneway.errors import DatabaseUnavailable
from laneway.rpc.server.assignment_queue import (
    MOST_BYTES,
    AssignmentQueue,
    Beat,
    OutAssignment,
    QueuedAssignment,
    size_of,
    split,
)
from laneway.rpc.server.assignments import Assigned
from laneway.rpc.server.handshake import StreamHandshake
from laneway.rpc.server.liveness import Liveness
from laneway.rpc.server.registration import IgnoredParts
from laneway.rpc.server.resources import DispatchResources
from laneway.rpc.server.served_types import ServedTypes, offers_of
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.rpc.server.stream_capacity import StreamCapacity
from laneway.rpc.server.stream_loop import LaneFloors, StreamLoop
from laneway.store.lanes import ControlState
from laneway.store.leases import Assignment, Verdict, claim
from laneway.store.remote import FinishedSteps, Lease, read_steps

log = logging.getLogger("laneway")

End = Literal["replaced", "stopping", "closed"]

RETRY_S: Final = 0.2
STOP_S: Final = 2.0
_NONE: Final = FinishedSteps(0, [])


class Dispatcher:
    """One worker's stream, from its hello to its end."""

    def __init__(
        self,
        hello: StreamHandshake,
        caller: StreamCaller,
        shared: DispatchResources,
        on_close: Callable[[Dispatcher], None],
    ) -> None:
        self.session: UUID = uuid4()
        self.worker_id = hello.worker_id
        self.principal_id = caller.principal_id
        self.name = hello.name
        self._caller = caller
        self._shared = shared
        self._timeouts_ms: dict[str, int] = {}
        self._on_close = on_close
        self._offers = offers_of(hello)
        self._isolations = {one.job_type: one.isolation for one in self._offers}
        self.room = StreamCapacity(
            hello.max_in_flight,
            {
                "async": hello.max_async,
                "thread": hello.max_threads,
                "process": hello.max_processes,
            },
        )
        self._outbox = AssignmentQueue()
        self._parts: deque[list[OutAssignment]] = deque()
        # When what is being sent is no longer worth it.
        self._stale_at = 0.0
        self._loops: dict[str, StreamLoop] = {}
        self._joined: set[str] = set()
        self._lease = (0.0, 0.0)
        self.silence = Liveness()
        self._closing: asyncio.Task[None] | None = None
        self.memory_bytes = hello.memory_bytes
        self.is_drained = False
        # Job types of its worker that its token did not cover when it came.
        self.uncovered: list[str] = []
        # What is in force otherwise than its worker declares, by job type.
        self.ignored: dict[str, IgnoredParts] = {}
        # Why `batches` has ended, or will: replaced → ABORTED, stopping → UNAVAILABLE.
        self.end: End | None = None
        # Since when there has been no room; None: there is.
        self.full_since: float | None = None

    def take_timeouts(self, timeouts: Mapping[str, float | None]) -> None:
        """How long handlers may take, in seconds by job type, as published."""
        self._timeouts_ms = {name: int(s * 1000) for name, s in timeouts.items() if s is not None}

    # What it serves ---------------------------------------------------------------------------

    @property
    def job_types(self) -> set[str]:
        return {one for lane in self._joined for one in self._loops[lane].job_types}

    @property
    def lanes(self) -> set[str]:
        return set(self._joined)

    def narrow(self, caller: StreamCaller) -> None:
        """Its token reaches other lanes now."""
        self._caller = caller
        self.serve(self._shared.state())
        self._shared.rotation.tell(self.job_types)

    def serve(self, state: ControlState) -> None:
        """Takes jobs in the lanes as they now are, as far as its token reaches."""
        if self.end is not None:
            return
        mine = served(state, self._reached(), self._caller.lanes)
        self.room.serve({lane: {one.isolation for one in ones} for lane, ones in mine.items()})
        rotation = self._shared.rotation
        for lane in self._joined - mine.keys():
            rotation.leave(self._loops[lane])
            self._loops[lane].serve([])
        for lane, offers in mine.items():
            if lane not in self._loops:
                self._loops[lane] = self._made(lane, offers)
                self._loops[lane].start()
            self._loops[lane].serve(offers)
            if lane not in self._joined:
                rotation.join(self._loops[lane])
        self._joined = set(mine)

    def _reached(self) -> list[ServedTypes]:
        types = self._caller.job_types
        if types is None:
            return self._offers
        return [one for one in self._offers if one.job_type.removeprefix(ANALYSIS_PREFIX) in types]

    def _made(self, lane: str, offers: Sequence[ServedTypes]) -> StreamLoop:
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
            wake_peers=shared.tell_others,
            claiming=shared.claiming,
            metrics=shared.counting,
            is_drained=lambda: self.is_drained or self.end is not None,
            claim=partial(claim, session=self.session),
        )
        return StreamLoop(
            lane,
            offers,
            tools,
            shared.complaints,
            stream=self,
            room=self.room,
            rotation=shared.rotation,
            floors=shared.floors.setdefault(lane, LaneFloors()),
        )

    @property
    def takes_jobs(self) -> bool:
        is_away = self.is_drained or self._outbox.is_stuck or self.silence.is_on
        return self.end is None and not is_away and not self._outbox.is_full

    def heard(self) -> None:
        """Its worker has said something here: it lives."""
        if self.silence.heard():
            self._shared.rotation.has_room()

    def renewed_elsewhere(self, ends: Mapping[Claim, float]) -> None:
        """Note when renewed leases of its worker end, as read from the database."""
        if self.silence.renewed_elsewhere(ends):
            self._shared.rotation.has_room()

    def drain(self, is_drained: bool) -> None:
        """Claims nothing more, or goes on."""
        if is_drained == self.is_drained:
            return
        self.is_drained = is_drained
        if is_drained:
            log.info("remote worker %s is drained: it is sent no more jobs", self.name)
        else:
            log.info("remote worker %s was resumed", self.name)
            self._shared.rotation.tell(self.job_types)

    # What it is given -------------------------------------------------------------------------

    # The worker renews what it was sent; what is not sent soon is given back.
    is_ready: Final = True

    def hold(self, claims: list[Claim], lease_s: float, age_s: float) -> None:
        self._lease = lease_s, time.monotonic() - age_s
        self.silence.hold(claims, *self._lease)

    def start(self, assignments: Sequence[Assignment], lane: str) -> None:
        """What was claimed goes into the outbox; its room is taken already."""
        lease_s, begun = self._lease
        parcels = []
        for one in assignments:
            assigned = self._assign(one.claim, lane, one.job_type)
            if one.changed_since_approval:
                self._shared.completer.add(of_forged(one.claim))
                continue
            timeout_ms = self._timeouts_ms.get(one.job_type.removeprefix(ANALYSIS_PREFIX), 0)
            parcels.append(
                QueuedAssignment(assigned, one, lease_s, begun, timeout_ms, size_of(one))
            )
        self._note_room()
        self._outbox.put(parcels)

    def adopt(self, leases: Iterable[Lease]) -> None:
        """What was assigned to its worker in an earlier stream takes room as well."""
        for one in leases:
            assigned = self._assign(one.claim, one.lane, one.job_type)
            self.room.take(one.lane, assigned.isolation, 1)
        self._note_room()

    def keep(self, leases: Iterable[Lease], read_at: float) -> None:
        """Expect its worker to renew these leases, which it still holds."""
        for one in leases:
            renewed_at = read_at + one.left_s - one.lease_s
            self.silence.hold([one.claim], one.lease_s, renewed_at)

    def _assign(self, claim: Claim, lane: str, job_type: str) -> Assigned:
        own = lane
        if job_type.startswith(ANALYSIS_PREFIX):
            own = self._shared.state().lane_of(job_type.removeprefix(ANALYSIS_PREFIX))
        isolation = self._isolations.get(job_type, "async")
        assigned = Assigned(str(claim.job_id), claim, own, job_type, isolation, self, lane)
        self._shared.assignments.add(assigned)
        return assigned

    def ended(self, one: Assigned) -> None:
        """An attempt of its worker is over: there is room for another."""
        self.room.give_back(one.leased_in, one.isolation)
        self._note_room()
        self.silence.ended(one.claim)

    def _note_room(self) -> None:
        if self.room.in_use < self.room.total:
            self.full_since = None
        elif self.full_since is None:
            self.full_since = time.monotonic()

    def beat(self) -> None:
        """Something about a job in hand has changed: the worker is to ask what."""
        self._outbox.beat()

    # What it sends ----------------------------------------------------------------------------

    async def batches(self) -> AsyncIterator[list[OutAssignment] | Beat]:
        """What is to be sent; ends when the worker was replaced or the replica stops."""
        while await self._outbox.wait():
            if self._outbox.take_beat():
                yield Beat()
            self._parts.extend(split(await self._opened(self._outbox.take())))
            if self._closing is not None:
                self._release_unsent()
            while self._parts:
                yield self._parts[0]
                # Only now it is on its way; the stream may have ended meanwhile.
                if self._parts:
                    self._parts.popleft()
            if self._outbox.sent():
                self._shared.rotation.has_room()

    async def _opened(self, parcels: list[QueuedAssignment]) -> list[tuple[OutAssignment, int]]:
        """What can be sent of them, and its size; the rest is given back, or is for later."""
        try:
            steps = await self._steps([x.assignment.claim for x in parcels])
        except DatabaseUnavailable as error:
            self._shared.complaints.warn("steps", error)
            again = [one for one in parcels if one.assignment.claim.attempt > 1]
            parcels, steps = [one for one in parcels if one.assignment.claim.attempt == 1], {}
            self._outbox.put_back(again)
            if not parcels:
                await asyncio.sleep(RETRY_S)
        except BaseException:
            self._outbox.put_back(parcels)
            if self._closing is not None:
                self._release_unsent()
            raise
        now = time.monotonic()
        made, void = [], []
        for place, parcel in enumerate(parcels):
            claim = parcel.assignment.claim
            if parcel.is_stale(now):
                void.append(claim)
                continue
            found = steps.get(claim.seq, _NONE)
            size = parcel.size + found.size
            if size > self._shared.max_bytes:
                self._refuse(claim, size)
            elif found.size and not found.steps:
                # With the next message, and all behind it: their order is kept.
                self._outbox.put_back(parcels[place:])
                break
            else:
                made.append((parcel.made(found.steps, now), size))
        self._release(void)
        self._stale_at = min((parcel.stale_at for parcel in parcels), default=0.0)
        return made

    async def _steps(self, claims: Sequence[Claim]) -> dict[int, FinishedSteps]:
        seqs = [claim.seq for claim in claims if claim.attempt > 1]
        read = read_steps(seqs, MOST_BYTES, self._shared.max_bytes)
        return await self._shared.rest.run(read) if seqs else {}

    def _refuse(self, claim: Claim, size: int) -> None:
        message = (
            f"payload, checkpoint and steps take {size:,} bytes, a message to a remote worker"
            f" at most {self._shared.max_bytes:,}"
        )
        error = own_error_json("AssignmentTooLarge", message)
        self._shared.completer.add(Verdict(claim, "giveup", error=error, ran_s=0.0))

    def _release(self, claims: Iterable[Claim]) -> None:
        for one in claims:
            self._shared.completer.add(Verdict(one, "release"))

    def _release_unsent(self) -> None:
        """What is just being written as well: if it arrives all the same, it is fenced."""
        parcels, parts = self._outbox.take_all(), list(self._parts)
        self._parts.clear()
        self._release(one.assignment.claim for one in parcels)
        self._release(one.claim for part in parts for one in part)
        types = {one.assignment.job_type for one in parcels}
        types |= {one.queued_as for part in parts for one in part}
        if types:
            self._shared.tell_others(types)

    def release_stale(self) -> None:
        """Gives back what nobody has taken in time."""
        self._release(one.assignment.claim for one in self._outbox.take_stale())
        if self._parts and time.monotonic() > self._stale_at:
            self._release(one.claim for part in self._parts for one in part)
            self._parts.clear()

    # Its end ----------------------------------------------------------------------------------

    async def stop_claiming(self, end: End = "stopping") -> None:
        """`batches` ends once what was claimed is sent."""
        self.end = self.end or end
        rotation = self._shared.rotation
        for lane in self._joined:
            rotation.leave(self._loops[lane])
        self._joined.clear()
        loops = list(self._loops.values())
        if loops:
            stops = [asyncio.ensure_future(loop.stop()) for loop in loops]
            # What a claim that hangs may still bring lapses and is taken back.
            await asyncio.wait(stops, timeout=STOP_S)
            for loop in loops:
                await loop.cancel()
            await asyncio.gather(*stops, return_exceptions=True)
        self._outbox.close()

    def give_way(self) -> None:
        """Another stream of the worker has come: this one ends, with nothing sent any more."""
        self.end = self.end or "replaced"
        _ = self._begin_closing()

    async def replace(self) -> None:
        """As `give_way`; returns once nothing is claimed for it any more."""
        self.give_way()
        await self.close()

    async def close(self) -> None:
        """The stream is over: releases what was not sent, at once. May be called twice."""
        # Whoever asks for it may be cancelled meanwhile.
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
