"""Settling plain finishes: a shorter way, with the same rows and answers as the longer one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from laneway.domain.claim import Claim
from laneway.store import leases
from laneway.store.leases import Verdict, WriteResult
from tests.store.approvals import analyzing, publish
from tests.store.test_limits import limit, needs
from tests.support.paused_statement import paused_where
from tests.support.store_client import StoreClient

RESULT = '{"n": 1}'


@pytest.fixture(autouse=True)
def counted(db: StoreClient) -> Iterator[None]:
    """After every test the counters of slots, limits and keys match the jobs."""
    yield
    assert db.slots_agree()
    assert db.limits_agree()
    assert db.keys_agree()


def finish(claim: Claim) -> Verdict:
    return Verdict(claim, "finish", result=RESULT, ran_s=1.5)


def finish_all(db: StoreClient, claims: list[Claim]) -> list[WriteResult]:
    return db.run(leases.settle([finish(claim) for claim in claims]))


def plain(db: StoreClient, count: int) -> list[Claim]:
    """Claims of jobs with nothing but a slot."""
    seqs = [db.submit(priority=3) for _ in range(count)]
    claims = db.claimed(count)
    assert [claim.seq for claim in claims] == seqs
    return claims


def test_plain_finish_writes_the_same_outcome_as_one_with_a_key(db: StoreClient) -> None:
    keyed, unkeyed = db.running(unique_key="k", priority=3), db.running(priority=3)
    assert finish_all(db, [keyed, unkeyed]) == []
    long, short = db.row("outcome", keyed.seq), db.row("outcome", unkeyed.seq)
    for row in (long, short):
        assert (row["finished_at"] - row["started_at"]).total_seconds() == pytest.approx(1.5)
        assert row["result"] == {"n": 1}
    apart = {"seq", "claimed_at"}
    assert {k: v for k, v in long.items() if k not in apart} == {
        k: v for k, v in short.items() if k not in apart
    }


def test_lease_renewed_during_a_settle_ends_with_its_outcome(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    claims = plain(db, 3)
    settling, renewing = another(), another()
    with paused_where(db, "complete_plain", "not l.keyed"):
        settled = settling.later(lambda: finish_all(settling, claims))
        db.await_blocked(settling)
        # The row has a new version now, which the settle's statement locks but cannot see.
        assert renewing.heartbeat(claims) == []
    assert settled.result() == []
    assert [db.places(claim.seq) for claim in claims] == [["outcome"]] * 3


def test_cancel_requested_during_a_settle_is_obeyed(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    (claim,) = plain(db, 1)
    settling, cancelling = another(), another()
    with paused_where(db, "complete_plain", "not l.keyed"):
        settled = settling.later(lambda: finish_all(settling, [claim]))
        db.await_blocked(settling)
        cancelling.cancel(claim.seq, "ann")
    assert settled.result() == [WriteResult(claim.seq, 1, "cancel_requested", "cancelled")]
    assert db.places(claim.seq) == ["outcome"]
    assert db.row("outcome", claim.seq)["cancel_by"] == "ann"


def test_lease_taken_back_during_a_settle_is_fenced(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    (claim,) = plain(db, 1)
    settling, watchdog = another(), another()
    with paused_where(db, "complete_plain", "not l.keyed"):
        settled = settling.later(lambda: finish_all(settling, [claim]))
        db.await_blocked(settling)
        watchdog.settle(claim, "spared", delay_s=0)
        (again,) = watchdog.claimed()
    assert settled.result() == [WriteResult(claim.seq, 1, "fenced", None)]
    assert db.places(claim.seq) == ["lease"]
    assert finish_all(db, [again]) == []


def test_each_job_of_a_mixed_batch_of_finishes_releases_what_it_held(db: StoreClient) -> None:
    limit(db, "x", max_concurrent=1)
    needs(db, "limited", "x")
    publish(db, "examined", analysis=True)
    db.submit("examined")
    examined = analyzing(db, "examined")
    simple = plain(db, 2)
    unique, keyed = db.running(unique_key="u"), db.running(concurrency_key="c")
    waiting = db.submit(concurrency_key="c")
    assert db.claimed() == []
    limited, cancelled = db.running("limited"), db.running()
    db.cancel(cancelled.seq, "ann")
    stale = db.running()
    db.settle(stale, "release")
    (live,) = db.claimed()

    batch = [simple[0], unique, stale, keyed, examined, limited, cancelled, live, simple[1]]
    answers = finish_all(db, batch)

    assert {(a.seq, a.answer, a.status) for a in answers} == {
        (stale.seq, "fenced", None),
        (cancelled.seq, "cancel_requested", "cancelled"),
        (examined.seq, "accepted", "failed"),
        (waiting, "promoted", "t"),
        (0, "freed", "limited"),
    }
    ended = [c.seq for c in (*simple, unique, keyed, limited, live)]
    assert [db.row("outcome", seq)["status"] for seq in ended] == ["completed"] * 6
    assert db.one("select count(*) from laneway.job_keys") == 0
    assert db.one("select count(*) from laneway.lease") == 0
    assert db.claimed() == [Claim(waiting, db.id_of(waiting), 1)]


def test_attempt_named_twice_among_plain_finishes_ends_once(db: StoreClient) -> None:
    one, two = plain(db, 2)
    assert finish_all(db, [one, two, one]) == []
    assert db.one("select count(*) from laneway.outcome") == 2


def test_plain_finish_given_again_is_accepted_and_writes_nothing(db: StoreClient) -> None:
    one, two = plain(db, 2)
    assert finish_all(db, [one]) == []
    before = db.row("outcome", one.seq)
    assert finish_all(db, [one, two]) == [WriteResult(one.seq, 1, "accepted", "completed")]
    assert db.row("outcome", one.seq) == before
    assert db.places(two.seq) == ["outcome"]


def test_plain_finish_of_a_locked_lease_is_busy_and_the_others_end(
    db: StoreClient, other: StoreClient
) -> None:
    claims = plain(db, 3)
    other.begin()
    other.cancel(claims[1].seq, "ann")
    assert finish_all(db, claims) == [WriteResult(claims[1].seq, 1, "busy", None)]
    other.rollback()
    assert finish_all(db, claims[1:2]) == []
    assert db.one("select count(*) from laneway.outcome") == 3


def test_settle_that_waits_for_a_key_holds_no_slot_counter(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient]
) -> None:
    """The order of locks is keys, then slots: the other way round could deadlock with a claim."""
    (simple,) = plain(db, 1)
    keyed = db.running(concurrency_key="c")
    other.begin()
    other.rows("select 1 from laneway.key_holders for update")
    settling = another()
    settled = settling.later(lambda: finish_all(settling, [simple, keyed]))
    db.await_blocked(settling)
    other.do("set local lock_timeout = '10s'")
    other.rows("select laneway.count_slots('default', %s, 0)", db.worker)
    other.commit()
    assert settled.result() == []
    assert db.one("select count(*) from laneway.outcome") == 2


def test_watched_job_gets_one_event_for_a_plain_finish(db: StoreClient) -> None:
    one, two = plain(db, 2)
    watched = db.running(unique_key="u")
    db.do("select laneway.open_watches(array[%s, %s]::bigint[], 60)", one.seq, watched.seq)
    before = db.one("select count(*) from laneway.events")
    finish_all(db, [one, two, watched])
    assert db.one("select count(*) from laneway.events") == before + 2
