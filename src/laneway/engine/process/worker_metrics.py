"""Counts the claims, outcomes and refused writes of one worker for its process's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from laneway.domain.approval import analysed_type
from laneway.domain.claim import Claim
from laneway.engine.lease.attempt_log import LossLog
from laneway.engine.lease.job_log import JobLogger
from laneway.observability import tracing
from laneway.observability.counters import PROCESS, Counters, OutcomeCounter, Pool
from laneway.store.leases import Assignment, Verdict, WriteResult

# Outcomes of verdicts after which the job waits again; the others count as retried.
_RETURNED: Final = {"snooze": "snoozed", "release": "released", "wait": "waited"}
# For an attempt that is not held any more.
_UNKNOWN: Final = ("job", "", None)


class WorkerMetrics:
    """Remembers, for each attempt held, its type, its lane and the counter of its outcome."""

    def __init__(self, counters: Counters = PROCESS, job_log: JobLogger | None = None) -> None:
        """`job_log` is None where other processes run the jobs."""
        self.counters = counters
        self._job_log = job_log
        self._held: dict[tuple[int, int], tuple[str, str, OutcomeCounter]] = {}
        self._loss_log = LossLog()

    @property
    def wants_origins(self) -> bool:
        """Whether claims should return wait times and traces of jobs."""
        return self.counters.is_read or tracing.is_on()

    def claimed(self, lane: str, assignments: Sequence[Assignment]) -> None:
        ends: dict[str, tuple[str, str, OutcomeCounter]] = {}
        for one in assignments:
            job_type = one.job_type
            if job_type not in ends:
                ends[job_type] = job_type, lane, self.counters.ends(lane, analysed_type(job_type))
            self._held[one.claim.seq, one.claim.attempt] = ends[job_type]
            if one.waited_s is not None:
                self.counters.waited(lane, one.waited_s)
        self.counters.claimed(lane, len(assignments))
        if self._job_log is not None:
            self._job_log.started(lane, assignments)

    def settled(self, verdicts: Sequence[Verdict], answers: Sequence[WriteResult]) -> None:
        by_pair = {(one.seq, one.attempt): one for one in answers}
        job_log = self._job_log if self._job_log is not None and self._job_log.wants_ends else None
        for verdict in verdicts:
            pair = verdict.claim.seq, verdict.claim.attempt
            job_type, lane, ends = self._held.pop(pair, _UNKNOWN)
            answer = by_pair.get(pair)
            if answer is not None and answer.answer == "fenced":
                self.refused("settle", answer.answer)
                self._loss_log.log(job_type, verdict.claim, "void")
            if ends is not None:
                outcome = "completed" if answer is None else _outcome(verdict, answer)
                ends.add(outcome, verdict.ran_s)
                if job_log is not None:
                    job_log.ended(job_type, lane, verdict, outcome)

    def void(self, claim: Claim) -> None:
        """Count an attempt that ended after it was fenced."""
        _, _, ends = self._held.pop((claim.seq, claim.attempt), _UNKNOWN)
        if ends is not None:
            ends.add("fenced", None)

    def left(self, claims: Iterable[Claim]) -> None:
        """Count attempts whose outcome is written elsewhere, or not at all."""
        for claim in claims:
            _, _, ends = self._held.pop((claim.seq, claim.attempt), _UNKNOWN)
            if ends is not None:
                ends.add("left", None)

    def refused(self, write: str, answer: str) -> None:
        """Count a fenced write."""
        if answer == "fenced":
            self.counters.fenced[write] += 1

    def watch(self, *pools: Pool) -> None:
        self.counters.pools.update(pools)

    def close(self) -> None:
        """Count the attempts still held as left: the worker has stopped."""
        for _, _, ends in self._held.values():
            ends.add("left", None)
        self._held.clear()
        self._loss_log.close()
        if self._job_log is not None:
            self._job_log.close()


def _outcome(verdict: Verdict, answer: WriteResult) -> str:
    if answer.answer == "fenced":
        return "fenced"
    if verdict.kind == "analyzed" and answer.status != "cancelled":
        return "analyzed"
    if answer.status is None:
        return "left"
    if answer.status in ("completed", "failed", "cancelled"):
        return answer.status
    return _RETURNED.get(verdict.kind, "retried")
