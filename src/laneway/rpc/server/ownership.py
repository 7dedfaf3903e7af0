"""Finds which of the attempts in a call belong to its worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from laneway.domain.approval import analysed_type
from laneway.errors import InvalidInput
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server.assignments import Assigned, Assignments
from laneway.rpc.server.handshake import read_id
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store.database import Database
from laneway.store.remote import RunningAttempt, find_attempts

if TYPE_CHECKING:
    from laneway.rpc.server.dispatcher import Dispatcher

OwnedAttempt = Assigned | RunningAttempt


class Ownership:
    """Finds attempts that were assigned here in memory, the rest with one statement per call.

    The rest are attempts that another replica assigned, and ended ones. An attempt of another
    worker, or beyond the token, is answered like one that does not exist.
    """

    def __init__(
        self, assignments: Assignments, database: Database, lane_of: Callable[[str], str]
    ) -> None:
        self._assignments = assignments
        self._database = database
        self._lane_of = lane_of

    async def find(
        self,
        caller: StreamCaller,
        worker_id: UUID,
        claims: Sequence[pb.Claim],
        place: Callable[[int], str],
    ) -> list[OwnedAttempt | None]:
        """The attempts that the worker holds or held, in order; `place` names one in errors."""
        found: list[OwnedAttempt | None] = []
        unknown: list[tuple[UUID, int]] = []
        places: list[int] = []
        # The stream of the last attempt that was the worker's.
        own: Dispatcher | None = None
        for i, claim in enumerate(claims):
            one = self._assignments.find(claim.job_id, claim.attempt)
            if one is not None:
                stream = one.dispatcher
                if stream is own or (
                    stream.worker_id == worker_id and stream.principal_id == caller.principal_id
                ):
                    own = stream
                    found.append(one)
                    continue
            job_id = read_id(claim.job_id, f"{place(i)}.job_id")
            if claim.attempt < 1:
                raise InvalidInput(f"{place(i)}.attempt", "must be 1 or more")
            found.append(None)
            unknown.append((job_id, claim.attempt))
            places.append(i)
        if unknown:
            held = await self._database.run(find_attempts(worker_id, caller.principal_id, unknown))
            for i, attempt in zip(places, unknown, strict=True):
                found[i] = held.get(attempt)
        if caller.lanes is None and caller.job_types is None:
            return found
        return [one if one is not None and self._reaches(caller, one) else None for one in found]

    def _reaches(self, caller: StreamCaller, one: OwnedAttempt) -> bool:
        """Whether the token covers the attempt; an analysis counts in the lane of its job type."""
        job_type = analysed_type(one.job_type)
        if caller.job_types is not None and job_type not in caller.job_types:
            return False
        lanes = caller.lanes
        return lanes is None or one.lane in lanes or self._lane_of(job_type) in lanes
