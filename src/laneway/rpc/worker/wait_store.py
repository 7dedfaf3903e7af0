"""Sends what handlers wait for to a server, with the interface of the database's store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from laneway.domain.claim import Claim
from laneway.errors import ServerError, StaleAttempt
from laneway.rpc import wait_messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.call_parts import FIELDS_BYTES, parts_of
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.store.handler_waits import EndedRow, NewWait, StoredWait, SubJobsWrite, WaitWrite

# As the database answers.
_ANSWERS: Final = {
    pb.ANSWER_UNSPECIFIED: "busy",
    pb.ANSWER_ACCEPTED: "kept",
    pb.ANSWER_FENCED: "fenced",
    pb.ANSWER_CANCEL_REQUESTED: "cancel_requested",
}
_OLDER: Final = "the server is older than this worker and serves no waits: upgrade it"


class RemoteWaitStore(ABC):
    """Waits, sub-jobs and results of the attempts that a server assigned."""

    _connection: ReplicaConnection
    _worker_id: str

    @abstractmethod
    def _claim(self, claim: Claim) -> pb.Claim: ...

    @abstractmethod
    def _can_wait(self, claim: Claim) -> bool:
        """Whether the server that assigned it serves waits."""

    async def read_waits(self, claims: Sequence[Claim]) -> list[list[StoredWait]]:
        return [await self._read_waits(claim) for claim in claims]

    async def _read_waits(self, claim: Claim) -> list[StoredWait]:
        request = pb.ReadWaitsRequest(**self._about(claim))
        response = await self._connection.call("ReadWaits", request)
        _check_running(claim, response.answer)
        return [wait_messages.read_stored(one) for one in response.waits]

    async def begin_wait(self, claim: Claim, wait: NewWait) -> WaitWrite:
        fields = wait_messages.write_new(wait)
        request = pb.BeginWaitRequest(**self._about(claim), **fields)
        response = await self._connection.call("BeginWait", request)
        state = wait_messages.STATE_NAMES.get(response.state)
        return WaitWrite(_ANSWERS[response.answer], state, response.result or None)

    async def submit_sub_jobs(
        self, claim: Claim, name: str, total: int, offset: int, jobs: Sequence[Sequence[Any]]
    ) -> SubJobsWrite:
        messages = wait_messages.write_jobs(jobs)
        # Without jobs, one empty call stores the wait.
        for part in parts_of(messages, _size_of_job) if messages else [messages]:
            request = pb.SubmitSubJobsRequest(
                **self._about(claim), name=name, total=total, offset=offset, jobs=part
            )
            response = await self._connection.call("SubmitSubJobs", request)
            if response.answer != pb.ANSWER_ACCEPTED:
                break
            offset += len(part)
        # The server wakes workers for the new jobs.
        return SubJobsWrite(_ANSWERS[response.answer], response.stored, None)

    async def sub_job_results(self, claim: Claim, name: str, after: int) -> list[EndedRow]:
        request = pb.ReadResultsRequest(**self._about(claim), wait=name, after=after)
        return await self._results(claim, request)

    async def results_of(self, claim: Claim, after: int) -> list[EndedRow]:
        return await self._results(claim, pb.ReadResultsRequest(**self._about(claim), after=after))

    async def _results(self, claim: Claim, request: pb.ReadResultsRequest) -> list[EndedRow]:
        response = await self._connection.call("ReadResults", request)
        _check_running(claim, response.answer)
        return [wait_messages.read_result_row(one) for one in response.results]

    def _about(self, claim: Claim) -> dict[str, Any]:
        if not self._can_wait(claim):
            raise ServerError(_OLDER)
        return {"worker_id": self._worker_id, "claim": self._claim(claim)}


def _size_of_job(job: pb.SubJob) -> int:
    return FIELDS_BYTES + job.ByteSize()


def _check_running(claim: Claim, answer: int) -> None:
    if answer == pb.ANSWER_FENCED:
        raise StaleAttempt(f"attempt {claim.attempt} is over")
