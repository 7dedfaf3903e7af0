"""A lost worker loses all its jobs: only the possible culprit is charged."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.store import health, leases
from tests.support.store_client import StoreClient

MAX_FREE = 5


def running(db: StoreClient, count: int) -> list[Claim]:
    return [db.running(max_retries=1) for _ in range(count)]


def lapse(db: StoreClient, *claims: Claim) -> None:
    db.do(
        "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"
        " where seq = any (%s)",
        [claim.seq for claim in claims],
    )
    reclaim(db)


def reclaim(db: StoreClient) -> None:
    while db.run(leases.run_watchdog(uuid4(), 60.0, limit=2)).epoch is None:
        db.do("delete from laneway.leader")
    while db.one("select count(*) from laneway.overdue_leases(clock_timestamp())"):
        db.do("delete from laneway.leader")
        db.run(leases.run_watchdog(uuid4(), 60.0, limit=2))


def bury(db: StoreClient, culprit: Claim | None = None, **more: Any) -> int:
    return db.run(
        leases.fail_worker(
            db.worker,
            "worker lost: gone",
            hung=more.pop("hung", False),
            culprit=None if culprit is None else culprit.seq,
            began=None if "began" not in more else [claim.seq for claim in more["began"]],
        )
    )


def charged(db: StoreClient, *claims: Claim) -> list[bool]:
    """Whether each of the attempts, which were all lost, was charged."""
    found = []
    for claim in claims:
        outcome, message, retries = db.one(
            "select a.outcome, a.error ->> 'message', v.retries from laneway.attempts a"
            " join laneway.jobs_view v using (seq) where a.seq = %s and a.attempt = %s",
            claim.seq,
            claim.attempt,
        )
        assert outcome == "lost"
        assert ("not charged" in message) == (retries == 0)
        found.append(retries == 1)
    return found


def test_job_lost_alone_is_charged(db: StoreClient) -> None:
    (claim,) = running(db, 1)
    lapse(db, claim)
    assert charged(db, claim) == [True]


def test_job_lost_from_a_worker_that_lives_on_is_charged(db: StoreClient) -> None:
    lost, kept = running(db, 2)
    db.do("update laneway.lease set lease_until = lease_until + interval '1 min'")
    lapse(db, lost)
    assert charged(db, lost) == [True]
    assert [answer.answer for answer in db.heartbeat([kept])] == []


def age(db: StoreClient, claim: Claim, seconds: float) -> None:
    """Move a lease into the past, as if it was never renewed."""
    db.do(
        "update laneway.lease set claimed_at = clock_timestamp() - make_interval(secs => %s),"
        " lease_until = clock_timestamp() - make_interval(secs => %s)"
        " + make_interval(secs => lease_seconds) where seq = %s",
        seconds, seconds, claim.seq,
    )  # fmt: skip
    db.do(
        "update laneway.lease set lease_until = claimed_at + make_interval(secs => lease_seconds)"
        " where seq = %s",
        claim.seq,
    )


def test_job_that_its_living_worker_never_received_is_not_charged(db: StoreClient) -> None:
    """The answer of the claim was lost on its way to the worker, which renews its other jobs."""
    unreceived, kept = running(db, 2)
    age(db, unreceived, 31)
    reclaim(db)
    assert charged(db, unreceived) == [False]
    assert not db.one("select exists (select from laneway.suspects)"), "it never began"
    assert [answer.answer for answer in db.heartbeat([kept])] == []


def test_job_never_received_is_charged_after_twenty_times(db: StoreClient) -> None:
    unreceived, _kept = running(db, 2)
    db.do("update laneway.lease set attempt = 21 where seq = %s", unreceived.seq)
    age(db, unreceived, 31)
    reclaim(db)
    assert charged(db, unreceived._replace(attempt=21)) == [True]


@pytest.mark.parametrize("transport, is_charged", [("grpc", False), ("database", True)])
def test_remote_worker_that_connects_again_never_received_the_job(
    db: StoreClient, transport: str, is_charged: bool
) -> None:
    """It names what it holds when it connects; a claim in flight may commit after that."""
    (unreceived,) = running(db, 1)
    age(db, unreceived, 31)
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, transport, job_types, concurrency,"
        " seen_at) values (%s, 'w', 'h', 1, '1', %s, '{}', 1, clock_timestamp() - interval '30 s')"
        " on conflict (id) do update set transport = excluded.transport,"
        " seen_at = excluded.seen_at",
        db.worker, transport,
    )  # fmt: skip
    reclaim(db)
    assert charged(db, unreceived) == [is_charged]


def test_jobs_lost_together_are_not_charged(db: StoreClient) -> None:
    """Also leases that lapse first and last, and those that a later pass reclaims."""
    claims = running(db, 5)
    for claim, lease_s in zip(claims, (30, 60, 60, 60, 90), strict=True):
        db.do(
            "update laneway.lease set lease_seconds = %s,"
            " lease_until = clock_timestamp() + make_interval(secs => %s) where seq = %s",
            lease_s, lease_s, claim.seq,
        )  # fmt: skip
    for _ in range(3):
        db.do("update laneway.lease set lease_until = lease_until - interval '31 s'")
        reclaim(db)
    assert charged(db, *claims) == [False] * 5
    assert db.slots_agree()


def test_jobs_lost_together_wait_before_they_come_back(db: StoreClient) -> None:
    claims = running(db, 2)
    lapse(db, *claims)
    assert db.one("select count(*) from laneway.delayed") == 2


def test_stale_attempt_cannot_end_spared_job(db: StoreClient) -> None:
    claims = running(db, 2)
    lapse(db, *claims)
    for kind in ("finish", "fail", "release", "snooze"):
        (answer,) = db.run(leases.settle([leases.Verdict(claims[0], kind)]))
        assert answer.answer == "fenced", kind


def test_job_lost_together_again_and_again_is_charged_at_last(db: StoreClient) -> None:
    for losses in range(MAX_FREE + 1):
        db.do("delete from laneway.suspects")
        db.do("delete from laneway.delayed")
        claims = running(db, 2)
        if losses:
            db.do(
                "insert into laneway.suspects (seq, losses, lost_with)"
                " values (%s, %s, gen_random_uuid())",
                claims[0].seq,
                losses,
            )
        lapse(db, *claims)
        assert charged(db, *claims) == [losses == MAX_FREE, False]


def test_culprit_alone_is_charged_and_others_come_back_at_once(db: StoreClient) -> None:
    claims = running(db, 4)
    assert bury(db, claims[2], began=claims) == 4
    assert charged(db, *claims) == [False, False, True, False]
    assert db.one("select count(*) from laneway.ready") == 3
    assert db.one("select count(*) from laneway.suspects") == 0


def test_only_handler_that_had_begun_is_the_culprit(db: StoreClient) -> None:
    claims = running(db, 3)
    bury(db, began=claims[1:2])
    assert charged(db, *claims) == [False, True, False]


def test_without_known_culprit_those_that_had_begun_are_suspects(db: StoreClient) -> None:
    claims = running(db, 4)
    bury(db, began=claims[:3])
    assert charged(db, *claims) == [False] * 4
    suspects = db.one("select array_agg(seq order by seq) from laneway.suspects")
    assert suspects == [claim.seq for claim in claims[:3]]
    assert db.one("select seq from laneway.ready") == claims[3].seq


def test_worker_that_dies_before_any_handler_began_charges_none_at_first(db: StoreClient) -> None:
    (claim,) = running(db, 1)
    bury(db, began=[])
    assert charged(db, claim) == [False]
    assert db.one("select losses from laneway.suspects") == 1


def test_hung_loop_is_not_the_fault_of_async_handlers(db: StoreClient) -> None:
    db.do("insert into laneway.job_types (name, isolation) values ('threaded', 'thread')")
    asynchronous, threaded = db.running(max_retries=1), db.running("threaded", max_retries=1)
    bury(db, began=[asynchronous, threaded], hung=True)
    assert charged(db, asynchronous, threaded) == [False, True]


def test_bury_function_of_landed_workers_still_works(db: StoreClient) -> None:
    claims = running(db, 2)
    assert db.one("select laneway.fail_worker(%s, false, null, 'gone')", db.worker) == 2
    assert charged(db, *claims) == [False, False]


def test_claim_returns_count_of_shared_losses(db: StoreClient) -> None:
    claims = running(db, 3)
    for claim in claims[:2]:
        db.settle(claim, "release")
    db.do(
        "insert into laneway.suspects (seq, losses, lost_with) values (%s, 2, gen_random_uuid())",
        claims[1].seq,
    )
    db.submit()
    assert [one.losses for one in db.claim(3).assignments] == [0, 2, 0]


@pytest.mark.parametrize("is_over", [True, False])
def test_losses_of_ended_jobs_are_forgotten(db: StoreClient, is_over: bool) -> None:
    (claim,) = running(db, 1)
    db.do(
        "insert into laneway.suspects (seq, losses, lost_with, lost_at)"
        " values (%s, 2, gen_random_uuid(), clock_timestamp() - interval '2 hours')",
        claim.seq,
    )
    if is_over:
        db.settle(claim, "finish", result="1")
    holder = uuid4()
    epoch = db.run(leases.run_watchdog(holder, 60.0)).epoch
    db.one("select laneway.prune_records(%s, %s, 100)", holder, epoch)
    assert db.one("select count(*) from laneway.suspects") == (0 if is_over else 1)


def test_suspects_that_live_do_not_hide_those_that_ended(db: StoreClient) -> None:
    for _ in range(6):
        claims = running(db, 2)
        bury(db)
        db.worker = uuid4()
    assert len(claims) == 2
    # Numbers far apart: it reads from a random number on, and must soon meet each.
    db.do(
        "update laneway.suspects s set lost_at = s.lost_at - interval '2 hours',"
        " lost_with = (lpad(to_hex(36 * x.n), 2, '0') || repeat('0', 30))::uuid"
        " from (select seq, dense_rank() over (order by lost_with) as n from laneway.suspects) x"
        " where x.seq = s.seq"
    )
    last = db.one("select max(seq) from laneway.suspects")
    db.do("delete from laneway.ready where seq = %s", last)
    db.do("delete from laneway.delayed where seq = %s", last)
    assert db.run(health.end_lost([last])) == [db.id_of(last)]
    holder = uuid4()
    epoch = db.run(leases.run_watchdog(holder, 60.0)).epoch
    gone = "select count(*) = 0 from laneway.suspects where seq = %s"
    for _ in range(1000):
        # It reads two at a time, and deletes rows of ended jobs.
        db.one("select laneway.prune_records(%s, %s, 2)", holder, epoch)
        if db.one(gone, last):
            break
    assert db.one(gone, last)
    assert db.one("select count(*) from laneway.suspects") == 11
