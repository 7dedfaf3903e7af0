"""A worker that is lost takes its jobs along: only the one that may be why is charged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.store import health, leases
from tests.store.desk import Desk

MOST_FREE = 5


def running(desk: Desk, count: int) -> list[Claim]:
    return [desk.running(max_retries=1) for _ in range(count)]


def lapse(desk: Desk, *claims: Claim) -> None:
    desk.do(
        "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"
        " where seq = any (%s)",
        [claim.seq for claim in claims],
    )
    reclaim(desk)


def reclaim(desk: Desk) -> None:
    while desk.run(leases.watch(uuid4(), 60.0, limit=2)).epoch is None:
        desk.do("delete from laneway.leader")
    while desk.one("select count(*) from laneway.overdue(clock_timestamp())"):
        desk.do("delete from laneway.leader")
        desk.run(leases.watch(uuid4(), 60.0, limit=2))


def bury(desk: Desk, culprit: Claim | None = None, **more: Any) -> int:
    return desk.run(
        leases.fail_worker(
            desk.worker,
            "worker lost: gone",
            hung=more.pop("hung", False),
            culprit=None if culprit is None else culprit.seq,
            began=None if "began" not in more else [claim.seq for claim in more["began"]],
        )
    )


def charged(desk: Desk, *claims: Claim) -> list[bool]:
    """Whether each of the attempts, which were all lost, was charged."""
    found = []
    for claim in claims:
        outcome, message, retries = desk.one(
            "select a.outcome, a.error ->> 'message', v.retries from laneway.attempts a"
            " join laneway.jobs_view v using (seq) where a.seq = %s and a.attempt = %s",
            claim.seq,
            claim.attempt,
        )
        assert outcome == "lost"
        assert ("not charged" in message) == (retries == 0)
        found.append(retries == 1)
    return found


def test_job_lost_alone_is_charged(desk: Desk) -> None:
    (claim,) = running(desk, 1)
    lapse(desk, claim)
    assert charged(desk, claim) == [True]


def test_job_lost_from_a_worker_that_lives_on_is_charged(desk: Desk) -> None:
    lost, kept = running(desk, 2)
    desk.do("update laneway.lease set lease_until = lease_until + interval '1 min'")
    lapse(desk, lost)
    assert charged(desk, lost) == [True]
    assert [answer.answer for answer in desk.heartbeat([kept])] == []


def test_jobs_lost_together_are_not_charged(desk: Desk) -> None:
    """Also those that lapse first and last, and those that a later pass takes back."""
    claims = running(desk, 5)
    for claim, lease_s in zip(claims, (30, 60, 60, 60, 90), strict=True):
        desk.do(
            "update laneway.lease set lease_seconds = %s,"
            " lease_until = clock_timestamp() + make_interval(secs => %s) where seq = %s",
            lease_s, lease_s, claim.seq,
        )  # fmt: skip
    for _ in range(3):
        desk.do("update laneway.lease set lease_until = lease_until - interval '31 s'")
        reclaim(desk)
    assert charged(desk, *claims) == [False] * 5
    assert desk.slots_agree()


def test_jobs_lost_together_wait_before_they_come_back(desk: Desk) -> None:
    claims = running(desk, 2)
    lapse(desk, *claims)
    assert desk.one("select count(*) from laneway.delayed") == 2


def test_stale_attempt_cannot_end_spared_job(desk: Desk) -> None:
    claims = running(desk, 2)
    lapse(desk, *claims)
    for kind in ("finish", "fail", "release", "snooze"):
        (answer,) = desk.run(leases.settle([leases.Verdict(claims[0], kind)]))
        assert answer.answer == "fenced", kind


def test_job_lost_together_again_and_again_is_charged_at_last(desk: Desk) -> None:
    for losses in range(MOST_FREE + 1):
        desk.do("delete from laneway.suspects")
        desk.do("delete from laneway.delayed")
        claims = running(desk, 2)
        if losses:
            desk.do(
                "insert into laneway.suspects (seq, losses, lost_with)"
                " values (%s, %s, gen_random_uuid())",
                claims[0].seq,
                losses,
            )
        lapse(desk, *claims)
        assert charged(desk, *claims) == [losses == MOST_FREE, False]


def test_culprit_alone_is_charged_and_others_come_back_at_once(desk: Desk) -> None:
    claims = running(desk, 4)
    assert bury(desk, claims[2], began=claims) == 4
    assert charged(desk, *claims) == [False, False, True, False]
    assert desk.one("select count(*) from laneway.ready") == 3
    assert desk.one("select count(*) from laneway.suspects") == 0


def test_only_handler_that_had_begun_is_the_culprit(desk: Desk) -> None:
    claims = running(desk, 3)
    bury(desk, began=claims[1:2])
    assert charged(desk, *claims) == [False, True, False]


def test_without_known_culprit_those_that_had_begun_are_suspects(desk: Desk) -> None:
    claims = running(desk, 4)
    bury(desk, began=claims[:3])
    assert charged(desk, *claims) == [False] * 4
    suspects = desk.one("select array_agg(seq order by seq) from laneway.suspects")
    assert suspects == [claim.seq for claim in claims[:3]]
    assert desk.one("select seq from laneway.ready") == claims[3].seq


def test_worker_that_dies_before_any_handler_began_charges_none_at_first(desk: Desk) -> None:
    (claim,) = running(desk, 1)
    bury(desk, began=[])
    assert charged(desk, claim) == [False]
    assert desk.one("select losses from laneway.suspects") == 1


def test_hung_loop_is_not_the_fault_of_async_handlers(desk: Desk) -> None:
    desk.do("insert into laneway.job_types (name, isolation) values ('threaded', 'thread')")
    asynchronous, threaded = desk.running(max_retries=1), desk.running("threaded", max_retries=1)
    bury(desk, began=[asynchronous, threaded], hung=True)
    assert charged(desk, asynchronous, threaded) == [False, True]


def test_bury_of_landed_workers_still_works(desk: Desk) -> None:
    claims = running(desk, 2)
    assert desk.one("select laneway.bury(%s, false, null, 'gone')", desk.worker) == 2
    assert charged(desk, *claims) == [False, False]


def test_claim_says_how_often_a_job_was_lost_with_others(desk: Desk) -> None:
    seqs = [desk.submit() for _ in range(3)]
    desk.do(
        "insert into laneway.suspects (seq, losses, lost_with) values (%s, 2, gen_random_uuid())",
        seqs[1],
    )
    assert [one.losses for one in desk.claim(3).assignments] == [0, 2, 0]


@pytest.mark.parametrize("is_over", [True, False])
def test_losses_of_ended_jobs_are_forgotten(desk: Desk, is_over: bool) -> None:
    (claim,) = running(desk, 1)
    desk.do(
        "insert into laneway.suspects (seq, losses, lost_with, lost_at)"
        " values (%s, 2, gen_random_uuid(), clock_timestamp() - interval '2 hours')",
        claim.seq,
    )
    if is_over:
        desk.settle(claim, "finish", result="1")
    holder = uuid4()
    epoch = desk.run(leases.watch(holder, 60.0)).epoch
    desk.one("select laneway.prune_records(%s, %s, 100)", holder, epoch)
    assert desk.one("select count(*) from laneway.suspects") == (0 if is_over else 1)


def test_suspects_that_live_do_not_hide_those_that_ended(desk: Desk) -> None:
    for _ in range(6):
        claims = running(desk, 2)
        bury(desk)
        desk.worker = uuid4()
    assert len(claims) == 2
    desk.do("update laneway.suspects set lost_at = lost_at - interval '2 hours'")
    last = desk.one("select max(seq) from laneway.suspects")
    desk.do("delete from laneway.ready where seq = %s", last)
    desk.do("delete from laneway.delayed where seq = %s", last)
    assert desk.run(health.end_lost([last])) == [desk.id_of(last)]
    holder = uuid4()
    epoch = desk.run(leases.watch(holder, 60.0)).epoch
    gone = "select count(*) = 0 from laneway.suspects where seq = %s"
    for _ in range(1000):
        # It reads two at a time, and takes away what has ended.
        desk.one("select laneway.prune_records(%s, %s, 2)", holder, epoch)
        if desk.one(gone, last):
            break
    assert desk.one(gone, last)
    assert desk.one("select count(*) from laneway.suspects") == 11
