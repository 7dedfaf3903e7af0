"""Waiters of a free key always have a job of their type in ready, whatever happens at once."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from laneway.store import jobs, leases, retention
from laneway.store.leases import Range, Verdict
from laneway.store.retention import LeaderTerm
from tests.support.store_client import StoreClient


@pytest.fixture(autouse=True)
def quiet(db: StoreClient) -> Iterator[None]:
    """After every test no job waits for a free key, and all jobs can run."""
    yield
    assert db.keys_agree()
    assert db.slots_agree()


def keyed(db: StoreClient, count: int, job_type: str = "t") -> list[int]:
    return [db.submit(job_type, concurrency_key="k") for _ in range(count)]


def first_ended(db: StoreClient, count: int) -> list[int]:
    """Submits jobs of one key and ends the first: the second is next, the others wait."""
    _, *rest = keyed(db, count)
    (claim,) = db.claimed()
    db.settle(claim, "finish")
    return rest


def fresh(*types: str) -> list[Range]:
    """The ranges of a claim that does not see which jobs returned to ready meanwhile."""
    return [Range(t, 1, True, leases.MIN_RANK, 0, leases.MAX_RANK) for t in types]


def jobs_in(db: StoreClient, table: str) -> list[int]:
    return [seq for (seq,) in db.rows(f"select seq from laneway.{table} order by rank, seq")]


def run_all(db: StoreClient, types: tuple[str, ...] = ("t",)) -> list[int]:
    order: list[int] = []
    while (answer := db.claim(100, types)).assignments or answer.more:
        order += [a.claim.seq for a in answer.assignments]
        if answer.assignments:
            db.run(leases.settle([Verdict(a.claim, "finish") for a in answer.assignments]))
    return order


# -- an earlier job in ready ---------------------------------------------------------------------


def test_cancel_of_next_job_sees_the_job_that_a_claim_parks(
    db: StoreClient, other: StoreClient
) -> None:
    (second,) = first_ended(db, 2)
    (late,) = keyed(db, 1)
    version = db.version()
    db.begin()
    assert db.claim(ranges=fresh("t"), version=version).parked == 1
    cancelling = other.later(lambda: other.cancel(second))
    db.await_blocked(other)
    db.commit()
    assert cancelling.result(20).found_in == "approved"
    assert jobs_in(db, "ready") == [late]


def test_claim_takes_the_key_while_the_next_job_is_cancelled(
    db: StoreClient, other: StoreClient
) -> None:
    (second,) = first_ended(db, 2)
    (late,) = keyed(db, 1)
    other.begin()
    assert other.cancel(second).found_in == "approved"
    answer = db.claim(ranges=fresh("t"))
    assert [a.claim.seq for a in answer.assignments] == [late]
    assert not db.claim().more
    other.commit()


def test_claim_takes_the_key_while_the_next_job_expires(
    db: StoreClient, other: StoreClient
) -> None:
    (second,) = first_ended(db, 2)
    (late,) = keyed(db, 1)
    db.do("insert into laneway.deadlines values (%s, '2020-01-01')", second)
    epoch = db.run(leases.run_watchdog(other.worker, 10)).epoch
    assert epoch is not None
    other.begin()
    assert other.run(retention.expire_overaged(LeaderTerm(other.worker, epoch))).ended == 1
    assert [c.seq for c in db.claimed(ranges=fresh("t"))] == [late]
    other.commit()
    assert db.places(second) == ["outcome"]


def test_job_that_lets_another_go_first_does_not_hold_up_other_types(db: StoreClient) -> None:
    (second,) = first_ended(db, 2)
    (late,), (unlike,) = keyed(db, 1), keyed(db, 1, "u")
    answer = db.claim(types=("t", "u"), ranges=fresh("t", "u"))
    assert (answer.assignments, answer.more) == ([], True)
    assert (jobs_in(db, "ready"), jobs_in(db, "key_waiters")) == ([second, unlike], [late])
    # The job that was next can run no more; one of another type still can.
    assert [c.seq for c in db.claimed(types=("u",))] == [unlike]


# -- an earlier waiter ---------------------------------------------------------------------------


def test_claim_takes_the_key_while_an_earlier_waiter_is_cancelled(
    db: StoreClient, other: StoreClient
) -> None:
    _, second, third = keyed(db, 3)
    (claim,) = db.claimed()
    other.begin()
    other.cancel(second)
    db.settle(claim, "finish")
    assert [c.seq for c in db.claimed()] == [third]
    other.commit()


def test_waiter_passed_over_by_a_cancel_that_rolled_back_goes_first(
    db: StoreClient, other: StoreClient
) -> None:
    _, second, third = keyed(db, 3)
    (claim,) = db.claimed()
    other.begin()
    other.cancel(second)
    db.settle(claim, "finish")
    other.rollback()
    with psycopg.connect(db.dsn, autocommit=True) as listener:
        listener.execute("listen laneway")
        answer = db.claim()
        assert [n.payload for n in listener.notifies(timeout=60, stop_after=1)] == ["wake t"]
    assert (answer.assignments, answer.more) == ([], True)
    assert (jobs_in(db, "ready"), jobs_in(db, "key_waiters")) == ([second], [third])
    assert run_all(db) == [second, third]


def test_next_job_whose_priority_is_lowered_lets_a_waiter_go_first(db: StoreClient) -> None:
    second, third = first_ended(db, 3)
    db.run(jobs.reprioritize(db.id_of(second), -5))
    assert run_all(db) == [third, second]


def test_all_columns_of_a_job_that_goes_first_come_back(db: StoreClient) -> None:
    second, third = first_ended(db, 3)
    db.run(jobs.reprioritize(db.id_of(second), -5))
    db.do("update laneway.key_waiters set attempt = 4, retries = 2, ready_at = '2030-01-01'")
    before = db.row("key_waiters", third)
    db.claim()
    after = db.row("ready", third)
    assert after == {**{name: before[name] for name in after if name != "fresh"}, "fresh": False}


# -- parking -------------------------------------------------------------------------------------


def test_park_leaves_a_job_whose_priority_changes_meanwhile_in_ready(
    db: StoreClient, other: StoreClient
) -> None:
    keyed(db, 1)
    db.claim()
    first, second = keyed(db, 2)
    other.begin()
    other.do("select from laneway.key_holders for update")
    parking = db.later(lambda: db.run(leases.park(["t"], 100)))
    other.await_blocked(db)
    with StoreClient(db.dsn) as operator:
        operator.run(jobs.reprioritize(operator.id_of(first), 3))
    other.rollback()
    assert parking.result(20) == 1
    assert (db.places(first), db.places(second)) == (["ready"], ["key_waiters"])
