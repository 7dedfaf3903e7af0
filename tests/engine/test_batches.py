"""Batches of writes are bounded by size, because other writes wait behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.engine.lease import completer, reporter
from laneway.engine.lease.completer import Completer
from laneway.engine.lease.reporter import Reporter
from laneway.observability.log_throttle import LogThrottle
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult

CLAIMS = [Claim(seq, uuid4(), 1) for seq in range(1, 6)]
# By the size of each entry: two fit, three do not, and one alone is too large.
SIZES = [40, 40, 40, 500, 40]
TOGETHER = [[1, 2], [3], [4], [5]]


class StoreClient:
    """A fake store that accepts everything and records each batch."""

    has_database = False

    def __init__(self) -> None:
        self.settled: list[list[int]] = []
        self.reported: list[list[int]] = []

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        self.settled.append([one.claim.seq for one in verdicts])
        return []

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        self.reported.append([one.claim.seq for one in reports])
        return []


async def test_large_results_are_settled_a_few_at_a_time_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completer, "MAX_CHARACTERS", 100)
    db, settled = StoreClient(), []
    work = Completer(db, LogThrottle(), lambda verdicts, _: settled.extend(verdicts))  # type: ignore[arg-type]
    for claim, size in zip(CLAIMS, SIZES, strict=True):
        error = "x" * size if claim.seq % 2 else None
        work.add(Verdict(claim, "finish", None if error else "x" * size, error))
    while await work.run_once() == 0:
        assert work.backlog
    assert db.settled == TOGETHER
    assert [one.claim for one in settled] == CLAIMS
    assert not work.backlog


@pytest.mark.parametrize(
    "portion, together", [(2000, [1000, 200]), (400, [400, 400, 400]), (1, [100] * 12)]
)
async def test_batches_do_not_exceed_claim_size(portion: int, together: list[int]) -> None:
    db = StoreClient()
    work = Completer(db, LogThrottle(), lambda *_: None, lambda: portion)  # type: ignore[arg-type]
    for seq in range(1200):
        work.add(Verdict(Claim(seq, uuid4(), 1), "finish"))
    while await work.run_once() == 0:
        assert work.backlog
    assert [len(batch) for batch in db.settled] == together
    assert [seq for batch in db.settled for seq in batch] == list(range(1200))


async def test_large_checkpoints_are_stored_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reporter, "MAX_CHARACTERS", 100)
    db = StoreClient()
    work = Reporter(db, LogThrottle(), lambda answer: None)  # type: ignore[arg-type]
    for claim, size in zip(CLAIMS, SIZES, strict=True):
        work.report(claim, Report(claim, checkpoint="x" * size))
    waits = [work.flush(claim) for claim in CLAIMS]
    heard = []
    for _ in TOGETHER:
        assert await work.run_once() == 0
        heard.append([n + 1 for n, one in enumerate(waits) if one.done()])
    assert db.reported == TOGETHER
    assert heard == [[1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
    await asyncio.gather(*waits)
