"""Resumed handlers read their waits together, and ask only for those without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import HandlerChannel
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.engine.run.waits import Asking, Waits
from laneway.errors import WaitTimeout
from laneway.observability.log_throttle import LogThrottle
from laneway.store.handler_waits import StoredWait

Requests = list[tuple[str, dict[str, Any]]]


def claim_of(seq: int) -> Claim:
    return Claim(seq=seq, job_id=UUID(int=seq), attempt=2)


def resumed() -> Waits:
    channel = SimpleNamespace(claim=claim_of(1), limits=PayloadLimits())
    return Waits(cast(HandlerChannel, channel), set())


def played(work: Asking[Any], *answers: object) -> tuple[Requests, Any]:
    """The requests of a procedure that gets these answers, and its result."""
    asked: Requests = []
    left = iter(answers)
    answer: object = None
    while True:
        try:
            asked.append(work.send(answer))
        except StopIteration as end:
            return asked, end.value
        answer = next(left)


def test_stored_answers_are_not_asked_for_again() -> None:
    waits = resumed()
    stored = [
        StoredWait("night", "sleep", state="done"),
        StoredWait("go", "event", "go", "", state="done", result='{"n": 1}'),
        StoredWait("late", "event", "late", "", state="timed_out"),
    ]
    assert played(waits.sleep("night", 5), stored) == ([("waits", {})], None)
    assert played(waits.wait_event("go", "", None, None)) == ([], {"n": 1})
    with pytest.raises(WaitTimeout, match=r"event 'late' did not come within 5 s"):
        played(waits.wait_event("late", "", 5, None))


def test_wait_without_a_stored_answer_is_asked_for() -> None:
    waits = resumed()
    stored = [StoredWait("night", "sleep"), StoredWait("go", "event", "go", "")]
    done = {"state": "done", "result": "2"}
    asked, _ = played(waits.sleep("night", 5), stored, done)
    assert [what for what, _ in asked] == ["waits", "wait"]
    asked, result = played(waits.wait_event("go", "", None, None), done)
    assert ([what for what, _ in asked], result) == (["wait"], 2)


class RecordingStore:
    """Answers reads of waits, and records the jobs of each."""

    def __init__(self, *, has_database: bool) -> None:
        self.has_database = has_database
        self.reads: list[list[int]] = []

    async def read_waits(self, claims: Sequence[Claim]) -> list[list[StoredWait]]:
        self.reads.append([claim.seq for claim in claims])
        return [[StoredWait(str(claim.seq), "sleep")] for claim in claims]


@pytest.mark.parametrize("has_database", [True, False], ids=["database", "server"])
async def test_handlers_that_continue_together_read_their_waits_together(
    has_database: bool,
) -> None:
    """Over a server each reads its own: one that is fenced, or asked in vain, delays no other."""
    store = RecordingStore(has_database=has_database)
    requests = HandlerRequests(
        cast(AttemptStore, store), LogThrottle(), lambda _: None, lambda _: None
    )
    runs = [
        cast(Run, SimpleNamespace(claim=claim_of(seq), is_finishing=False)) for seq in range(20)
    ]
    found = await asyncio.gather(*(requests.answer(run, "waits", {}) for run in runs))
    assert [waits[0].name for waits in found] == [str(seq) for seq in range(20)]
    together = list(range(20))
    assert store.reads == ([together] if has_database else [[seq] for seq in together])
    await requests.close()
