"""Flows without jobs are deleted too, and deletions at the same time do not stop each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import psycopg
import pytest

from laneway.store import retention
from laneway.store.retention import LeaderTerm
from tests.store.edges import Edges
from tests.support.store_client import BLOCKED, PATIENCE, StoreClient


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


def fold(db: StoreClient) -> int:
    return int(db.one("select laneway.fold_tallies(1000)"))


def prune(db: StoreClient) -> None:
    epoch = db.one("select laneway.take_leadership(%s, 3600)", db.worker)
    db.run(retention.prune_records(LeaderTerm(db.worker, epoch)))


def age(db: StoreClient, flow: UUID, days: int) -> None:
    made = "created_at - make_interval(days => %s)"
    db.do(f"update laneway.flows set created_at = {made} where id = %s", days, flow)


def remains(db: StoreClient) -> list[tuple[Any, ...]]:
    fold(db)
    return db.rows("select id from laneway.flows") + db.rows("select id from laneway.flow_tallies")


def remove(db: StoreClient, *seqs: int) -> int:
    return len(db.rows("select * from laneway.remove_jobs(%s)", list(seqs)))


def await_end_or_block(call: Future[int], client: StoreClient) -> None:
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(client.dsn, autocommit=True) as watch:
        while not call.done() and watch.execute(BLOCKED, [client.pid]).fetchone() != (True,):
            assert time.monotonic() < deadline, "it neither ends nor waits"


def test_flow_of_duplicates_is_deleted_as_any_flow(db: StoreClient, edges: Edges) -> None:
    holder = edges.submit(unique_key="k")
    flow = edges.flow()
    duplicate = [
        db.one("select duplicate from laneway.submit('t', unique_key => 'k', flow => %s)", flow)
        for _ in range(2)
    ]
    assert duplicate == [True, True]
    fold(db)
    edges.end(holder)
    age(db, flow, 6)
    prune(db)
    assert db.one("select id from laneway.flows") == flow
    age(db, flow, 2)
    prune(db)
    assert remains(db) == []
    assert db.places(holder) == ["outcome"]


def test_old_flow_whose_jobs_are_not_counted_yet_is_kept(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    edges.submit(flow=flow)
    age(db, flow, 30)
    prune(db)
    assert db.one("select id from laneway.flows") == flow


def test_flow_that_an_open_transaction_joins_is_kept(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    age(db, flow, 30)
    with other.conn.transaction():
        Edges(other).submit(flow=flow)
        db.do("set lock_timeout = '5s'")
        prune(db)
    assert db.one("select id from laneway.flows") == flow
    assert db.one("select count(*) from laneway.links") == 1


def test_flow_whose_last_jobs_are_deleted_at_once_is_deleted(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    first, second = edges.submit_batch([None, None], flow=flow)
    edges.end(first, second)
    fold(db)
    db.begin()
    other.begin()
    assert (remove(db, first), remove(other, second)) == (1, 1)
    db.commit()
    other.commit()
    assert remains(db) == []


def test_deleted_flows_leave_no_tallies(db: StoreClient, edges: Edges) -> None:
    seqs = []
    for _ in range(5):
        seqs += edges.submit_batch([None], flow=edges.flow())
    edges.end(*seqs)
    fold(db)
    assert remove(db, *seqs) == 5
    assert db.rows("select id from laneway.flows") == []
    assert db.one("select count(*) from laneway.flow_tallies") == 0


def test_flow_locked_during_the_deletion_of_its_jobs_is_deleted_later(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    (seq,) = edges.submit_batch([None], flow=flow)
    edges.end(seq)
    fold(db)
    with other.conn.transaction():
        # As a submit that then fails.
        other.one("select laneway.flow_to_join(%s, '{default}')", flow)
        assert remove(db, seq) == 1
        db.do("set lock_timeout = '5s'")
        fold(db)
        assert db.one("select id from laneway.flows") == flow
    assert remains(db) == []


def test_deletions_of_parents_and_children_do_not_deadlock(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient], edges: Edges
) -> None:
    """Each deletes the parent of the other's child; failed parents keep their edges."""
    root = edges.submit()
    first, second = edges.submit(after=[root], after_failure="run"), edges.submit()
    third = edges.submit(after=[second])
    child = edges.submit(after=[first])
    last = edges.submit(after=[third])
    for seq in (last, child, third, second, first, root):
        db.cancel(seq)
    # The edges that a deletion of several batches may meet, in every order.
    pairs = [(root, first), (first, child), (second, third), (third, last), (child, last)]
    for parent, one in pairs:
        db.do(
            "insert into laneway.open_edges values (%s, %s, 'cancel') on conflict do nothing",
            parent,
            one,
        )
    holder = another()
    holder.begin()
    held = "select from laneway.open_edges where parent = %s and child = %s for update"
    holder.rows(held, root, first)
    deleted = db.later(lambda: remove(db, first, last))
    holder.await_blocked(db)
    also = other.later(lambda: remove(other, child, third))
    await_end_or_block(also, other)
    holder.rollback()
    assert (deleted.result(60), also.result(60)) == (2, 2)
    assert edges.are_consistent()
