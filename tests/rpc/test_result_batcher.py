"""Each reported result gets the answer for exactly that result."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.errors import DatabaseUnavailable
from laneway.rpc.server.result_batcher import ResultBatcher
from laneway.store.leases import Verdict, WriteResult

CLAIM = Claim(7, uuid4(), 1)
PAIR = CLAIM.seq, CLAIM.attempt
RELEASE, FINISH = Verdict(CLAIM, "release"), Verdict(CLAIM, "finish", "1")
RELEASED = WriteResult(*PAIR, "accepted", "approved")
FENCED = WriteResult(*PAIR, "fenced")


class Clerk:
    """Takes verdicts to be settled."""

    def __init__(self) -> None:
        self.taken: list[Verdict] = []

    def add(self, verdict: Verdict) -> None:
        self.taken.append(verdict)


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def settling(clerk: Clerk) -> ResultBatcher:
    return ResultBatcher(clerk)  # type: ignore[arg-type]


async def saying(settling: ResultBatcher) -> asyncio.Future[list[WriteResult]]:
    answer = asyncio.ensure_future(settling.settle([FINISH], 20.0))
    await asyncio.sleep(0)
    return answer


async def test_result_of_release_does_not_answer_finish(settling: ResultBatcher) -> None:
    answer = await saying(settling)
    settling.settled([RELEASE], {PAIR: RELEASED})
    settling.settled([FINISH], {PAIR: FENCED})
    assert await answer == [FENCED]


async def test_conflicting_results_in_one_batch_must_be_repeated(
    settling: ResultBatcher,
) -> None:
    answer = await saying(settling)
    settling.settled([RELEASE, FINISH], {PAIR: RELEASED})
    assert [one.answer for one in await answer] == ["busy"]
    again = await saying(settling)
    settling.settled([FINISH], {})
    assert [one.status for one in await again] == ["completed"]


async def test_call_that_waits_too_long_is_given_up(settling: ResultBatcher, clerk: Clerk) -> None:
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            await settling.settle([FINISH], 0.0)
    assert settling.waiting == 0
    assert clerk.taken == [FINISH]
    again = await saying(settling)
    settling.settled([FINISH], {})
    assert [one.status for one in await again] == ["completed"]
    assert clerk.taken == [FINISH]
    with pytest.raises(DatabaseUnavailable):
        await settling.settle([FINISH], 0.0)
    assert clerk.taken == [FINISH, FINISH]
