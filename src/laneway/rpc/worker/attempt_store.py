"""Sends the writes of running attempts to a server, in batches that one call may carry.

Claims are numbered within this process: a remote worker does not know the database's numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from laneway.domain.claim import Claim
from laneway.errors import DatabaseUnavailable
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.call_parts import FIELDS_BYTES, bytes_of, parts_of
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.rpc.worker.wait_store import RemoteWaitStore
from laneway.store.call_limits import LimitGrant
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from laneway.store.steps import StepWrite

_ANSWERS: Final = {
    pb.ANSWER_UNSPECIFIED: "busy",
    pb.ANSWER_ACCEPTED: "accepted",
    pb.ANSWER_FENCED: "fenced",
    pb.ANSWER_CANCEL_REQUESTED: "cancel_requested",
}
# The answer for an attempt with several: the last of these.
_BY_IMPORTANCE: Final = (
    pb.ANSWER_ACCEPTED,
    pb.ANSWER_CANCEL_REQUESTED,
    pb.ANSWER_UNSPECIFIED,
    pb.ANSWER_FENCED,
)


class HeldAttempt(NamedTuple):
    """The parts of an assignment that are needed while it runs."""

    claim: Claim
    job_id: str
    retries: int
    max_retries: int
    steps: dict[str, str]
    # Whether the server serves waits: an older one does not.
    can_wait: bool = False


class RemoteAttemptStore(RemoteWaitStore):
    """Writes through a server, with the interface of the database's store."""

    has_database: ClassVar[bool] = False

    def __init__(
        self,
        connection: ReplicaConnection,
        worker_id: str,
        ahead: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`ahead`: by lane, how many jobs the worker may hold beyond its room now."""
        self._connection = connection
        self._ahead = ahead
        self._worker_id = worker_id
        # By the number of the claim in this process.
        self._held: dict[int, HeldAttempt] = {}

    def take(self, one: HeldAttempt) -> None:
        """Keeps an attempt until `forget`."""
        self._held[one.claim.seq] = one

    def forget(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._held.pop(claim.seq, None)

    def holds(self) -> list[pb.Claim]:
        """All held attempts, as servers name them."""
        return [
            pb.Claim(job_id=one.job_id, attempt=one.claim.attempt) for one in self._held.values()
        ]

    def named(self, seq: int) -> list[pb.Claim]:
        """The attempt as servers name it, if it is held."""
        one = self._held.get(seq)
        return [] if one is None else [pb.Claim(job_id=one.job_id, attempt=one.claim.attempt)]

    # Results ------------------------------------------------------------------------------------

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        answers: list[WriteResult] = []
        for part in parts_of(verdicts, _size_of_verdict):
            request = pb.ReportResultRequest(worker_id=self._worker_id)
            add = request.results.add
            for verdict in part:
                self._write(add(), verdict)
            request.ahead.update(self._ahead())
            response = await self._connection.call("ReportResult", request)
            codes = response.answers
            _check_count(len(codes), len(part))
            statuses = response.statuses
            if len(statuses) != len(part):
                statuses = [""] * len(part)
            for verdict, code, status in zip(part, codes, statuses, strict=True):
                is_plain = verdict.kind == "finish" and status in ("", "completed")
                if code != pb.ANSWER_ACCEPTED or not is_plain:
                    answers.append(self._answer(verdict, code, status))
        return answers

    def _write(self, result: pb.Result, verdict: Verdict) -> None:
        claim = verdict.claim
        result.claim.job_id = self._id(claim)
        result.claim.attempt = claim.attempt
        if verdict.ran_s is not None:
            result.ran_ms = int(verdict.ran_s * 1000)
        match verdict.kind:
            case "finish" | "analyzed":
                result.finish.result = verdict.result or ""
            case "fail" | "giveup":
                _write_error(result.fail.error, verdict.error)
                result.fail.is_final = verdict.kind == "giveup"
                if verdict.delay_s is not None:
                    result.fail.retry_after_ms = round(verdict.delay_s * 1000)
            case "snooze":
                result.snooze.delay_ms = round((verdict.delay_s or 0.0) * 1000)
            case "cancel":
                if verdict.error is not None:
                    result.cancel.reason = json.loads(verdict.error)["message"]
                result.cancel.result = verdict.result or ""
            case "release":
                result.release.SetInParent()
            case "wait":
                result.wait.name = verdict.result or ""
            case kind:
                raise AssertionError(kind)

    def _answer(self, verdict: Verdict, code: pb.Answer, status: str) -> WriteResult:
        answer, claim = _ANSWERS[code], verdict.claim
        known: str | None = status or None
        if known is None and answer in ("accepted", "cancel_requested"):
            known = self._likely_status(verdict, answer)
        return WriteResult(claim.seq, claim.attempt, answer, known)

    def _likely_status(self, verdict: Verdict, answer: str) -> str:
        """The likely state of a job, if the server does not send it."""
        if answer == "cancel_requested" or verdict.kind == "cancel":
            return "cancelled"
        if verdict.kind == "wait":
            return "waiting"
        found = self._held.get(verdict.claim.seq)
        is_spent = found is not None and found.retries >= found.max_retries
        if verdict.kind == "giveup" or (verdict.kind == "fail" and is_spent):
            return "failed"
        return "approved"

    # Progress -----------------------------------------------------------------------------------

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        answers: dict[Claim, pb.Answer] = {}
        entries: list[Report | LogEntry] = [*reports, *lines]
        for part in parts_of(entries, _size_of_entry):
            claims, updates = self._updates(part)
            for claim, progressed in zip(claims, await self._progress(updates), strict=True):
                before = answers.get(claim, pb.ANSWER_ACCEPTED)
                answers[claim] = max(before, progressed.answer, key=_BY_IMPORTANCE.index)
        return [
            WriteResult(claim.seq, claim.attempt, _ANSWERS[code])
            for claim, code in answers.items()
            if code != pb.ANSWER_ACCEPTED
        ]

    def _updates(self, entries: Sequence[Report | LogEntry]) -> tuple[list[Claim], list[pb.Update]]:
        """One update for each claim, in the order of their first entries."""
        updates: dict[Claim, pb.Update] = {}
        for one in entries:
            update = updates.get(one.claim)
            if update is None:
                update = updates[one.claim] = pb.Update(claim=self._claim(one.claim))
            if isinstance(one, LogEntry):
                update.lines.add(
                    number=one.line,
                    level=one.level,
                    message=one.message,
                    age_ms=int(one.age_s * 1000),
                )
            else:
                for name, value in one._asdict().items():
                    if name != "claim" and value is not None:
                        setattr(update, name, value)
        return list(updates), list(updates.values())

    async def _progress(self, updates: list[pb.Update]) -> Sequence[pb.Progressed]:
        request = pb.ReportProgressRequest(worker_id=self._worker_id, updates=updates)
        response = await self._connection.call("ReportProgress", request)
        _check_count(len(response.progressed), len(updates))
        return list(response.progressed)

    # Steps --------------------------------------------------------------------------------------

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        found = self._held.get(claim.seq)
        return {} if found is None else found.steps

    async def keep_step(self, claim: Claim, name: str, result: str, took_s: float) -> StepWrite:
        step = pb.Step(name=name, result=result, took_ms=int(took_s * 1000))
        update = pb.Update(claim=self._claim(claim), steps=[step])
        (progressed,) = await self._progress([update])
        answer = _ANSWERS[progressed.answer]
        if answer in ("fenced", "busy"):
            return StepWrite(answer, None)
        kept = next((one.result for one in progressed.steps if one.name == name), result)
        return StepWrite("kept" if answer == "accepted" else answer, kept)

    # Limits -------------------------------------------------------------------------------------

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        response = await self._connection.call(
            "AcquireLimits",
            pb.AcquireLimitsRequest(
                worker_id=self._worker_id, claim=self._claim(claim), wants=wants, inside=inside
            ),
        )
        answer = _ANSWERS[response.answer]
        if answer != "accepted":
            return LimitGrant(answer, None)
        if response.is_full:
            return LimitGrant("full", response.wait_ms / 1000 if response.wait_ms else None)
        return LimitGrant("granted", None)

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        response = await self._connection.call(
            "ReleaseLimits",
            pb.ReleaseLimitsRequest(
                worker_id=self._worker_id, claim=self._claim(claim), keeps=keeps
            ),
        )
        answer = _ANSWERS[response.answer]
        return "given" if answer in ("accepted", "cancel_requested") else answer

    # Names --------------------------------------------------------------------------------------

    def _id(self, claim: Claim) -> str:
        found = self._held.get(claim.seq)
        return str(claim.job_id) if found is None else found.job_id

    def _can_wait(self, claim: Claim) -> bool:
        found = self._held.get(claim.seq)
        return found is not None and found.can_wait

    def _claim(self, claim: Claim) -> pb.Claim:
        return pb.Claim(job_id=self._id(claim), attempt=claim.attempt)


def _write_error(into: pb.Error, text: str | None) -> None:
    details = json.loads(text) if text else {"type": "Error", "message": ""}
    into.type = details["type"]
    into.message = details["message"]
    into.traceback = details.get("traceback") or ""
    into.is_public = details.get("public") is True


def _check_count(found: int, wanted: int) -> None:
    if found != wanted:
        raise DatabaseUnavailable(f"the server sent {found} answers for {wanted} items")


def _size_of_verdict(verdict: Verdict) -> int:
    return FIELDS_BYTES + bytes_of(verdict.result) + bytes_of(verdict.error)


def _size_of_entry(one: Report | LogEntry) -> int:
    if isinstance(one, LogEntry):
        return FIELDS_BYTES + bytes_of(one.message)
    return FIELDS_BYTES + bytes_of(one.message) + bytes_of(one.checkpoint)
