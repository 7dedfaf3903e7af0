"""The attempts that a replica has assigned to its connected workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim

if TYPE_CHECKING:
    from laneway.rpc.server.dispatcher import Dispatcher


class Assigned(NamedTuple):
    """One attempt that was assigned to a worker, sent or not."""

    id: str
    claim: Claim
    # The lane of the job type, also for an analysis: tokens are checked against it.
    lane: str
    job_type: str
    isolation: str
    dispatcher: Dispatcher
    # The lane of the lease.
    leased_in: str

    @property
    def worker_id(self) -> UUID:
        return self.dispatcher.worker_id

    @property
    def principal_id(self) -> UUID:
        return self.dispatcher.principal_id


class Assignments:
    """Assigned attempts, by job id (as text) and attempt, and by the job's number and attempt."""

    def __init__(self) -> None:
        self._by_id: dict[tuple[str, int], Assigned] = {}
        self._by_seq: dict[tuple[int, int], Assigned] = {}

    def add(self, one: Assigned) -> None:
        self._by_id[one.id, one.claim.attempt] = one
        self._by_seq[one.claim.seq, one.claim.attempt] = one

    def find(self, job_id: str, attempt: int) -> Assigned | None:
        """The attempt by the job's id as text."""
        return self._by_id.get((job_id, attempt))

    def of(self, claim: Claim) -> Assigned | None:
        return self._by_seq.get((claim.seq, claim.attempt))

    def pop(self, claim: Claim) -> Assigned | None:
        found = self._by_seq.pop((claim.seq, claim.attempt), None)
        if found is not None:
            del self._by_id[found.id, claim.attempt]
        return found

    def has(self, claim: Claim) -> bool:
        return (claim.seq, claim.attempt) in self._by_seq

    def drop(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self.pop(claim)

    def __iter__(self) -> Iterator[Assigned]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)
