"""An owner of many failed sub-jobs is retried in bounded steps, and starts after the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from laneway.domain.claim import Claim
from laneway.store import edges as statements
from laneway.store import handler_waits
from tests.store.edges import Edges
from tests.store.test_durable_waits import entries
from tests.support.store_client import StoreClient

MANY = 350
FAILED = '{"type": "SubJobsFailed", "message": "some"}'


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


def owner_of_failed(db: StoreClient, count: int) -> Claim:
    """A job that failed because all its sub-jobs did."""
    owner = db.running("o")
    db.run(handler_waits.submit_sub_jobs(owner, "parts", count, 0, entries(count)))
    fail(db, db.claimed(count, ["part"]))
    db.settle(owner, "giveup", error=FAILED)
    return owner


def fail(db: StoreClient, claims: Sequence[Claim]) -> None:
    for claim in claims:
        db.settle(claim, "giveup", error='{"type": "E", "message": "no"}')


def failed(db: StoreClient) -> int:
    return int(db.one("select count(*) from laneway.outcome where job_type = 'part'"))


def finish(db: StoreClient) -> None:
    while claims := db.claimed(1000, ["part"]):
        for claim in claims:
            db.settle(claim, "finish", result="1")


def test_one_statement_retries_a_bounded_number_of_sub_jobs(db: StoreClient, edges: Edges) -> None:
    owner = owner_of_failed(db, MANY)
    assert db.retry(owner.seq).found_in == "failed"
    left = [failed(db)]
    assert left[0] >= MANY - 100
    assert db.places(owner.seq) == ["waiting"]
    while db.run(statements.advance()).more:
        left.append(failed(db))
        assert left[-2] - left[-1] <= 200
        assert db.places(owner.seq) == ["waiting"]
    assert failed(db) == 0
    assert db.places(owner.seq) == ["waiting"]
    assert edges.are_consistent()
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]


def test_owner_waits_for_all_sub_jobs_although_the_first_end_at_once(
    db: StoreClient, edges: Edges
) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    # No process does the rest: a crash here only delays it.
    finish(db)
    assert db.places(owner.seq) == ["waiting"]
    assert db.one("select * from laneway.mend_waits(0, 1000)")[0] == 0
    edges.advance()
    assert db.places(owner.seq) == ["waiting"]
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]
    assert edges.are_consistent()


def test_cancel_of_the_owner_stops_the_retry_of_its_sub_jobs(db: StoreClient, edges: Edges) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    db.cancel(owner.seq)
    edges.advance()
    assert failed(db) == MANY
    assert db.one("select count(*) from laneway.arrivals") == 0
    assert edges.are_consistent()
    db.retry(owner.seq)
    edges.advance()
    assert failed(db) == 0
    assert edges.are_consistent()
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]


def test_locked_sub_job_is_retried_later(db: StoreClient, other: StoreClient, edges: Edges) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    last = db.one("select max(seq) from laneway.links where owner = %s", owner.seq)
    with other.conn.transaction():
        other.rows("select from laneway.outcome where seq = %s for key share", last)
        edges.advance()
        assert failed(db) == 1
        assert db.run(statements.advance()).is_busy
        assert db.places(owner.seq) == ["waiting"]
    edges.advance()
    assert failed(db) == 0
    assert edges.are_consistent()


def test_nested_sub_jobs_are_retried_step_by_step(db: StoreClient, edges: Edges) -> None:
    owner = db.running("o")
    db.run(handler_waits.submit_sub_jobs(owner, "groups", 5, 0, entries(5, "group")))
    groups = db.claimed(5, ["group"])
    for group in groups:
        db.run(handler_waits.submit_sub_jobs(group, "parts", 80, 0, entries(80)))
        fail(db, db.claimed(80, ["part"]))
        db.settle(group, "giveup", error=FAILED)
    db.settle(owner, "giveup", error=FAILED)
    db.retry(owner.seq)
    assert failed(db) >= 300
    edges.advance()
    assert failed(db) == 0
    assert [db.places(group.seq) for group in groups] == [["waiting"]] * 5
    finish(db)
    edges.advance()
    assert [db.places(group.seq) for group in groups] == [["ready"]] * 5
    assert db.places(owner.seq) == ["waiting"]
    assert edges.are_consistent()


def test_owner_of_sub_jobs_that_were_retried_before_waits_for_all(
    db: StoreClient, edges: Edges
) -> None:
    owner = owner_of_failed(db, MANY)
    for (seq,) in db.rows("select seq from laneway.links where owner = %s", owner.seq):
        db.retry(seq)
    db.retry(owner.seq)
    edges.advance()
    assert db.row("countdowns", owner.seq)["missing"] == MANY
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]
    assert edges.are_consistent()


def test_repair_leaves_an_unfinished_retry_alone(
    db: StoreClient, edges: Edges, another: Callable[[], StoreClient]
) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    assert db.rows("select * from laneway.stuck_waits(0, 1000)") == []
    # A repair of lost edges also counts what is left to do.
    db.do("update laneway.countdowns set missing = 1 where seq = %s", owner.seq)
    another().one("select * from laneway.mend_waits(0, 1000)")
    assert edges.are_consistent()
    edges.advance()
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]


def test_step_waits_for_no_end_that_is_not_committed(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    # A handler that finishes in its own transaction has the countdown of the owner locked.
    (claim,) = other.claimed(1, ["part"])
    with other.conn.transaction():
        other.settle(claim, "finish", result="1")
        # Far longer than one wait for a lock, and shorter than one for each sub-job.
        db.do("set statement_timeout = '5s'")
        assert db.run(statements.advance()).is_busy
        assert db.places(owner.seq) == ["waiting"]
    edges.advance()
    # The one that finished.
    assert failed(db) == 1
    assert edges.are_consistent()
    finish(db)
    edges.advance()
    assert db.places(owner.seq) == ["ready"]


def test_step_waits_for_one_unique_key_at_most(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    owner = owner_of_failed(db, MANY)
    db.retry(owner.seq)
    late = "select seq from laneway.links where owner = %s order by seq desc limit 40"
    keyed = [seq for (seq,) in db.rows(late, owner.seq)]
    db.do("update laneway.jobs set unique_key = 'k' || seq where seq = any (%s)", keyed)
    with other.conn.transaction():
        other.rows(
            "insert into laneway.job_keys select j.workspace, j.job_type, j.unique_key, 0"
            " from laneway.jobs j where j.seq = any (%s)",
            keyed,
        )
        db.do("set statement_timeout = '5s'")
        edges.advance()
        assert db.run(statements.advance()).is_busy
        assert db.places(owner.seq) == ["waiting"]
        other.do("delete from laneway.job_keys where seq = 0")
    edges.advance()
    assert failed(db) == 0
    assert edges.are_consistent()
