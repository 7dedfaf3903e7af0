"""What one worker adds to the counts of its process: claims, ends, writes that were refused."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from laneway import tracing
from laneway.domain.claim import Claim
from laneway.store.leases import Answer, Assignment, Verdict
from laneway.tally import PROCESS, Ends, Pool, Tally

log = logging.getLogger("laneway")

# What a job that waits again was given back for; any other is tried again.
_RETURNED: Final = {"snooze": "snoozed", "release": "released"}


class Counting:
    """Remembers of each attempt in hand where its end will be counted."""

    def __init__(self, tally: Tally = PROCESS) -> None:
        self.tally = tally
        self._held: dict[tuple[int, int], Ends] = {}

    @property
    def wants_origins(self) -> bool:
        """Whether somebody asks how long jobs waited, or which trace they belong to."""
        return self.tally.is_read or tracing.is_on()

    def claimed(self, lane: str, assignments: Sequence[Assignment]) -> None:
        ends: dict[str, Ends] = {}
        for one in assignments:
            if one.job_type not in ends:
                ends[one.job_type] = self.tally.ends(lane, one.job_type.lstrip("\x01"))
            self._held[one.claim.seq, one.claim.attempt] = ends[one.job_type]
            if one.waited_s is not None:
                self.tally.waited(lane, one.waited_s)
        self.tally.claimed(lane, len(assignments))

    def settled(self, verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> None:
        said = {(one.seq, one.attempt): one for one in answers}
        for verdict in verdicts:
            pair = verdict.claim.seq, verdict.claim.attempt
            ends = self._held.pop(pair, None)
            answer = said.get(pair)
            if answer is not None and answer.answer == "fenced":
                self.refused("settle", answer.answer)
                log.warning(
                    "attempt %s of job %s was superseded: its end is void",
                    verdict.claim.attempt,
                    verdict.claim.job_id,
                )
            if ends is not None:
                outcome = "completed" if answer is None else _outcome(verdict, answer)
                ends.add(outcome, verdict.ran_s)

    def void(self, claim: Claim) -> None:
        """An attempt ended that was no longer ours to settle."""
        ends = self._held.pop((claim.seq, claim.attempt), None)
        if ends is not None:
            ends.add("fenced", None)

    def left(self, claims: Iterable[Claim]) -> None:
        """Attempts whose end is told elsewhere, or to nobody."""
        for claim in claims:
            ends = self._held.pop((claim.seq, claim.attempt), None)
            if ends is not None:
                ends.add("left", None)

    def refused(self, write: str, answer: str) -> None:
        """Counts a write about an attempt that is over."""
        if answer == "fenced":
            self.tally.fenced[write] += 1

    def watch(self, *pools: Pool) -> None:
        self.tally.pools.update(pools)

    def close(self) -> None:
        """The worker has stopped: what it still held is taken back from it."""
        for ends in self._held.values():
            ends.add("left", None)
        self._held.clear()


def _outcome(verdict: Verdict, answer: Answer) -> str:
    if answer.answer == "fenced":
        return "fenced"
    if verdict.kind == "analyzed" and answer.status != "cancelled":
        return "analyzed"
    if answer.status is None:
        return "left"
    if answer.status in ("completed", "failed", "cancelled"):
        return answer.status
    return _RETURNED.get(verdict.kind, "retried")
