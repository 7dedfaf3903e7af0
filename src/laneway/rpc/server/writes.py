"""Writes heartbeats and progress of many calls together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from laneway.domain.claim import Claim
from laneway.engine.lease.reporter import merged
from laneway.rpc.messages import ProgressReply, ProgressUpdate
from laneway.store import steps
from laneway.store.batcher import Batcher
from laneway.store.database import Database
from laneway.store.leases import Report, heartbeat, report
from laneway.store.steps import StepWrite

# A small update weighs one; a whole batch then takes about 16 MB.
_WEIGHT_CHARACTERS: Final = 16_000
MAX_WEIGHT: Final = 1000
# The most important answer first.
_BY_IMPORTANCE: Final = ("busy", "fenced", "cancel_requested")


class Writes:
    """Heartbeats and progress of a replica, each written by one statement at a time."""

    def __init__(self, renewals: Database, database: Database) -> None:
        self._renewals = renewals
        self._database = database
        self.heartbeats: Batcher[Claim, str] = Batcher(self._renew, lambda answer: answer == "busy")
        self.updates: Batcher[ProgressUpdate, ProgressReply] = Batcher(
            self._store, lambda reply: reply.answer == "busy", most=MAX_WEIGHT, weigh=_weight
        )

    async def close(self) -> None:
        await self.heartbeats.close()
        await self.updates.close()

    async def _renew(self, claims: list[Claim]) -> list[str]:
        found = await self._renewals.run(
            heartbeat([claim.seq for claim in claims], [claim.attempt for claim in claims])
        )
        unusual = {(one.seq, one.attempt): one.answer for one in found}
        return [unusual.get((claim.seq, claim.attempt), "accepted") for claim in claims]

    async def _store(self, updates: list[ProgressUpdate]) -> list[ProgressReply]:
        reports: dict[Claim, Report] = {}
        for one in updates:
            if one.report is not None:
                # Merge two reports of one attempt; the newer one wins.
                claim = one.report.claim
                old = reports.get(claim)
                reports[claim] = one.report if old is None else merged(old, one.report)
        lines = [line for one in updates for line in one.lines]
        unusual: dict[tuple[int, int], str] = {}
        if reports or lines:
            found = await self._database.run(report(list(reports.values()), lines))
            unusual = {(one.seq, one.attempt): one.answer for one in found}
        given = [step for one in updates for step in one.steps]
        answers = await self._database.run(steps.save_many(given)) if given else []
        stored = iter(answers)
        return [_reply(one, unusual, [next(stored) for _ in one.steps]) for one in updates]


def _weight(one: ProgressUpdate) -> int:
    characters = sum(len(line.message) for line in one.lines)
    characters += sum(len(step.result) for step in one.steps)
    if one.report is not None:
        characters += len(one.report.checkpoint or "")
    return 1 + characters // _WEIGHT_CHARACTERS


def _reply(
    one: ProgressUpdate, unusual: dict[tuple[int, int], str], stored: Sequence[StepWrite]
) -> ProgressReply:
    answers = {step.answer for step in stored}
    if one.report is not None:
        answers.add(unusual.get((one.report.claim.seq, one.report.claim.attempt), "accepted"))
    elif one.lines:
        claim = one.lines[0].claim
        answers.add(unusual.get((claim.seq, claim.attempt), "accepted"))
    first = next((answer for answer in _BY_IMPORTANCE if answer in answers), "accepted")
    return ProgressReply(first, tuple(stored))
