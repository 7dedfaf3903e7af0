"""A cancel of a flow in batches starts no job between them."""

from __future__ import annotations

import pytest

from laneway.domain.claim import Claim
from laneway.store import flows, handler_waits
from tests.store.edges import Edges
from tests.store.test_durable_waits import entries
from tests.support.store_client import StoreClient


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


def suspended(db: StoreClient, owner: Claim, count: int, job_type: str = "part") -> None:
    """Let a job wait for sub-jobs."""
    db.run(handler_waits.submit_sub_jobs(owner, "parts", count, 0, entries(count, job_type)))
    db.settle(owner, "wait", result="parts")


def test_cancel_of_a_flow_starts_no_owner_of_sub_jobs(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch(
        [None, {"after": [0], "after_failure": "run"}, {"after": [1], "after_failure": "run"}],
        flow=flow,
    )
    (owner,) = db.claimed(1)
    suspended(db, owner, 3, "group")
    groups = db.claimed(3, ["group"])
    for group in groups:
        suspended(db, group, 2)
    waiting = [*seqs, *(group.seq for group in groups)]
    assert [db.places(seq) for seq in waiting] == [["waiting"]] * 6
    cancelled, before = 0, None
    while True:
        # Each batch is committed, so that workers could claim what it starts.
        done = db.run(flows.cancel(flow, "me", None, limit=6, before=before))
        cancelled += done.cancelled
        assert db.claimed(10, ["t", "group"]) == []
        assert all(db.places(seq) in (["waiting"], ["outcome"]) for seq in waiting)
        before = done.before
        if before is None:
            break
    assert (cancelled, done.skipped) == (12, [])
    assert edges.are_consistent()


def test_sub_jobs_of_a_locked_owner_are_cancelled_after_it(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    (seq,) = edges.submit_batch([None], flow=flow)
    (owner,) = db.claimed(1)
    suspended(db, owner, 3)
    with other.conn.transaction():
        other.rows("select from laneway.waiting where seq = %s for update", seq)
        done = db.run(flows.cancel(flow, "me", None, limit=10))
        assert (done.cancelled, len(done.skipped or ())) == (0, 4)
    again = db.run(flows.cancel(flow, "me", None, limit=10, only=done.skipped))
    assert (again.cancelled, again.skipped) == (4, [])
    assert db.places(seq) == ["outcome"]
    assert edges.are_consistent()


def test_owner_that_starts_too_many_is_cancelled_in_its_turn(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    after = {"after": [0], "after_failure": "run"}
    seqs = edges.submit_batch([None, *[after] * 5], flow=flow)
    (owner,) = db.claimed(1)
    suspended(db, owner, 3)
    skipped, before, cancelled = list[int](), None, 0
    while True:
        done = db.run(flows.cancel(flow, "me", None, limit=3, before=before, skipped=skipped))
        skipped += done.skipped or ()
        cancelled += done.cancelled
        before = done.before
        assert all(db.places(seq) in (["waiting"], ["outcome"]) for seq in seqs)
        if before is None:
            break
    assert len(skipped) == 3
    done = db.run(flows.cancel(flow, "me", None, limit=3, only=skipped))
    assert (cancelled + done.cancelled, done.skipped) == (9, [])
    assert edges.are_consistent()
