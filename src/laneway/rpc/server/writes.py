"""What calls say about running work, written for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from laneway.domain.claim import Claim
from laneway.engine.lease.reporter import merged
from laneway.rpc.messages import ProgressReply, ProgressUpdate
from laneway.rpc.server.batcher import Batcher
from laneway.store import steps
from laneway.store.database import Database
from laneway.store.leases import Report, heartbeat, report
from laneway.store.steps import StepWrite

# A small update weighs one; all that go together then take about 16 MB.
_WEIGHT_CHARACTERS: Final = 16_000
MOST_WEIGHT: Final = 1000
# From what must be heard to what goes without saying.
_BY_WEIGHT: Final = ("busy", "fenced", "cancel_requested")


class Writes:
    """Heartbeats and progress of a replica: one statement of a kind is under way at a time."""

    def __init__(self, renewals: Database, database: Database) -> None:
        self._renewals = renewals
        self._database = database
        self.beats: Batcher[Claim, str] = Batcher(self._beat, lambda answer: answer == "busy")
        self.news: Batcher[ProgressUpdate, ProgressReply] = Batcher(
            self._note, lambda noted: noted.answer == "busy", most=MOST_WEIGHT, weigh=_weight
        )

    async def close(self) -> None:
        await self.beats.close()
        await self.news.close()

    async def _beat(self, claims: list[Claim]) -> list[str]:
        told = await self._renewals.run(
            heartbeat([claim.seq for claim in claims], [claim.attempt for claim in claims])
        )
        odd = {(one.seq, one.attempt): one.answer for one in told}
        return [odd.get((claim.seq, claim.attempt), "accepted") for claim in claims]

    async def _note(self, news: list[ProgressUpdate]) -> list[ProgressReply]:
        reports: dict[Claim, Report] = {}
        for one in news:
            if one.report is not None:
                # Of two about one attempt, the newer with what only the older says.
                claim = one.report.claim
                old = reports.get(claim)
                reports[claim] = one.report if old is None else merged(old, one.report)
        lines = [line for one in news for line in one.lines]
        odd: dict[tuple[int, int], str] = {}
        if reports or lines:
            told = await self._database.run(report(list(reports.values()), lines))
            odd = {(one.seq, one.attempt): one.answer for one in told}
        given = [step for one in news for step in one.steps]
        answers = await self._database.run(steps.keep_many(given)) if given else []
        kept = iter(answers)
        return [_noted(one, odd, [next(kept) for _ in one.steps]) for one in news]


def _weight(one: ProgressUpdate) -> int:
    characters = sum(len(line.message) for line in one.lines)
    characters += sum(len(step.result) for step in one.steps)
    if one.report is not None:
        characters += len(one.report.checkpoint or "")
    return 1 + characters // _WEIGHT_CHARACTERS


def _noted(
    one: ProgressUpdate, odd: dict[tuple[int, int], str], kept: Sequence[StepWrite]
) -> ProgressReply:
    answers = {step.answer for step in kept}
    if one.report is not None:
        answers.add(odd.get((one.report.claim.seq, one.report.claim.attempt), "accepted"))
    elif one.lines:
        claim = one.lines[0].claim
        answers.add(odd.get((claim.seq, claim.attempt), "accepted"))
    worst = next((answer for answer in _BY_WEIGHT if answer in answers), "accepted")
    return ProgressReply(worst, tuple(kept))
