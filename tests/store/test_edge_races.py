"""Two transactions at once: a child starts once, and none is left waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway.store import edges as statements
from tests.store.edges import Edges, Link
from tests.support.store_client import StoreClient


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


@pytest.fixture
def others(other: StoreClient) -> Edges:
    return Edges(other)


def test_two_last_ends_at_once_release_the_child_once(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parents = [edges.submit(), edges.submit()]
    child = edges.submit(after=parents)
    # Two workers: the slots of one are counted in one row.
    (first,), (second,) = db.claimed(1), other.claimed(1)
    db.begin()
    assert edges.settle([first]) == []
    other.begin()
    # It does not wait for the other end, and does not see it.
    assert [a.answer for a in others.settle([second])] == ["arrived"]
    db.commit()
    other.commit()
    assert db.places(child) == ["waiting"]
    assert others.arrivals() == [("counted", child, 1)]
    assert others.advance() == {"t"}
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()
    assert others.advance() == set()


def test_last_end_that_is_rolled_back_leaves_the_child_waiting(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parents = [edges.submit(), edges.submit()]
    child = edges.submit(after=parents)
    # Two workers: the slots of one are counted in one row.
    (first,), (second,) = db.claimed(1), other.claimed(1)
    db.begin()
    edges.settle([first])
    others.settle([second])
    answer = other.run(statements.advance())
    assert answer.is_busy
    assert not answer.more
    db.rollback()
    others.advance()
    assert db.row("countdowns", child)["missing"] == 1
    assert db.places(child) == ["waiting"]
    edges.settle([first])
    assert db.places(child) == ["ready"]


def test_submit_after_a_running_job_holds_back_its_end(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    db.begin()
    child = edges.submit(after=[parent.seq])
    # Heartbeats go on; the end is to be tried again, without waiting.
    assert other.heartbeat([parent]) == []
    assert [a.answer for a in others.settle([parent])] == ["busy"]
    db.commit()
    assert [(a.seq, a.answer) for a in others.settle([parent])] == [(child, "promoted")]
    assert db.places(child) == ["ready"]


def test_submit_after_a_queued_job_holds_back_its_claim(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = edges.submit()
    db.begin()
    child = edges.submit(after=[parent])
    assert other.claimed() == []
    db.commit()
    (claim,) = other.claimed()
    others.settle([claim])
    assert db.places(child) == ["ready"]


def test_submit_waits_for_an_end_in_flight_and_sees_it(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    db.begin()
    edges.settle([parent])
    submitted = other.later(lambda: others.submit(after=[parent.seq]))
    db.await_blocked(other)
    db.commit()
    assert db.places(submitted.result(60)) == ["ready"]
    assert edges.are_consistent()


def test_retried_parent_keeps_its_children_from_the_cascade(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    edges.settle([parent], "giveup")
    assert [a[0] for a in edges.arrivals()] == ["ended"]
    db.begin()
    db.retry(parent.seq)
    # The retry is not committed: the cascade neither waits nor decides.
    assert other.run(statements.advance()).is_busy
    db.commit()
    others.advance()
    assert others.arrivals() == []
    assert db.places(child) == ["waiting"]
    edges.end(parent.seq)
    assert db.places(child) == ["ready"]


def test_retry_waits_for_a_cascade_in_flight(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    edges.settle([parent], "giveup")
    db.begin()
    edges.advance()
    retried = other.later(lambda: other.retry(parent.seq))
    db.await_blocked(other)
    db.commit()
    retried.result(60)
    assert edges.status(child) == "cancelled"
    other.retry(child)
    assert db.places(child) == ["waiting"]


def test_cancel_in_flight_does_not_stop_other_ends(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    child, sibling = (edges.submit(after=[parent.seq]) for _ in range(2))
    db.begin()
    db.cancel(child)
    answers = others.settle([parent])
    assert {(a.seq, a.answer) for a in answers} == {(sibling, "promoted"), (0, "arrived")}
    db.rollback()
    others.advance()
    assert db.places(child) == ["ready"]


def test_cancel_that_commits_wins_over_the_release(
    db: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    db.begin()
    db.cancel(child)
    others.settle([parent])
    db.commit()
    others.advance()
    assert edges.status(child) == "cancelled"
    assert others.arrivals() == []


def test_priority_change_in_flight_only_delays_the_release(
    db: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    db.begin()
    db.one("select laneway.reprioritize(%s, 9)", child)
    others.settle([parent])
    db.commit()
    others.advance()
    assert db.row("ready", child)["rank"] == -9


def test_retry_of_the_child_against_its_last_end(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    db.cancel(child)
    db.begin()
    db.retry(child)
    # The retry has the countdown locked: the end leaves its count behind.
    assert [a.answer for a in others.settle([parent])] == ["arrived"]
    db.commit()
    others.advance()
    assert db.places(child) == ["ready"]


def test_last_end_against_a_later_retry_of_the_child(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = db.running()
    child = edges.submit(after=[parent.seq])
    db.cancel(child)
    db.begin()
    edges.settle([parent])
    retried = other.later(lambda: other.retry(child))
    db.await_blocked(other)
    db.commit()
    retried.result(60)
    assert db.places(child) == ["ready"]


def test_retry_of_a_child_holds_back_the_end_of_its_retried_parent(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], after_failure="run")
    db.cancel(child)
    db.cancel(parent)
    db.retry(parent)
    (claim,) = db.claimed()
    db.begin()
    db.retry(child)
    assert [a.answer for a in others.settle([claim])] == ["busy"]
    db.commit()
    assert db.places(child) == ["waiting"]
    assert [(a.seq, a.answer) for a in others.settle([claim])] == [(child, "promoted")]
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_retry_of_a_child_waits_for_an_end_of_its_parent_in_flight(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], after_failure="run")
    db.cancel(child)
    db.cancel(parent)
    db.retry(parent)
    (claim,) = db.claimed()
    db.begin()
    edges.settle([claim], "giveup")
    retried = other.later(lambda: other.retry(child))
    db.await_blocked(other)
    db.commit()
    retried.result(60)
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_two_retries_of_a_flow_at_once_reopen_each_edge_once(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    links: list[Link] = [None, None, {"after": [0, 1], "after_failure": "run"}]
    seqs = edges.submit_batch(links, flow=flow)
    db.one("select laneway.cancel_flow(%s, 'ann', 'stop')", flow)
    db.begin()
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 3
    again = "select retried, after, is_busy from laneway.retry_flow(%s)"
    # It neither waits nor takes a job before its parents.
    assert other.one(again, flow) == (0, 0, True)
    db.commit()
    assert other.one(again, flow) == (0, None, False)
    assert db.row("countdowns", seqs[2])["missing"] == 2
    edges.end(seqs[0], kind="giveup")
    assert db.places(seqs[2]) == ["waiting"]
    edges.end(seqs[1])
    assert db.places(seqs[2]) == ["ready"]


def test_two_advances_share_the_work(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    seqs = edges.submit_batch([None, *({"after": [0]} for _ in range(1999))], flow=edges.flow())
    (claim,) = db.claimed()
    edges.settle([claim])
    db.begin()
    db.run(statements.advance(100))
    # The rest of the parent's edges belongs to the other transaction, until it ends.
    assert other.run(statements.advance(100)).done == 0
    db.commit()
    others.advance(100)
    assert db.one("select count(*) from laneway.ready") == len(seqs) - 1
    assert edges.are_consistent()


def test_deletion_of_a_parent_waits_for_a_submit_after_it(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = edges.submit()
    edges.end(parent, kind="giveup")
    db.begin()
    child = edges.submit(after=[parent], after_failure="hold")
    removed = other.later(lambda: other.rows("select * from laneway.remove_jobs(%s)", [parent]))
    db.await_blocked(other)
    db.commit()
    assert removed.result(60) == []
    db.retry(parent)
    edges.end(parent)
    assert db.places(child) == ["ready"]


@pytest.mark.parametrize("kind", ["finish", "giveup"])
def test_settle_follows_edges_before_it_locks_the_counter_of_slots(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient], kind: str
) -> None:
    """Claims wait for that counter: a settle with many edges must not keep it meanwhile."""
    parent = db.running()
    child = Edges(db).submit(after=[parent.seq], after_failure="run")
    db.do("select laneway.open_watches(array[%s]::bigint[], 600)", child)
    other.begin()
    # Holds up the release of the child, which logs an event.
    other.rows("select 1 from laneway.watches where seq = %s for update", child)
    settling = another()
    settled = settling.later(lambda: Edges(settling).settle([parent], kind))
    db.await_blocked(settling)
    other.do("set local lock_timeout = '10s'")
    other.rows("select laneway.count_slots('default', %s, 0)", db.worker)
    other.commit()
    assert (child, "promoted") in [(a.seq, a.answer) for a in settled.result(60)]
    assert db.places(child) == ["ready"]
    assert db.slots_agree()


def test_end_with_an_older_snapshot_misses_no_edge(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    parent = db.running()
    other.begin()
    other.do("set transaction isolation level repeatable read")
    other.one("select count(*) from laneway.control")
    child = edges.submit(after=[parent.seq])
    others.settle([parent])
    other.commit()
    edges.advance()
    assert db.places(child) == ["ready"]


def test_cancels_in_opposite_order_do_not_fail(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    first, second = edges.submit(), edges.submit()
    db.begin()
    db.cancel(second)
    other.begin()
    other.cancel(first)
    waiting = other.later(lambda: other.cancel(second))
    db.await_blocked(other)
    found = {db.cancel(first).found_in}
    db.commit()
    found.add(waiting.result(60).found_in)
    other.commit()
    # One of them skips its job.
    assert "busy" in found
    assert edges.status(second) == "cancelled"


def test_ends_of_a_wide_fan_in_wait_for_no_lock(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    """Whatever another end has locked: the flow, the child, its countdown, the other edges."""
    flow = edges.flow()
    links: list[Link] = [None] * 30
    seqs = edges.submit_batch([*links, {"after": list(range(30))}], flow=flow)
    claims = db.claimed(15)
    last = other.claimed(15)
    with other.conn.transaction():
        others.settle(last[:14])
        for table in ("countdowns", "waiting"):
            other.rows(f"select from laneway.{table} where seq = %s for update", seqs[-1])
        other.rows("select from laneway.flows where id = %s for update", flow)
        db.do("set lock_timeout = '1ms'")
        for claim in claims:
            assert {answer.answer for answer in edges.settle([claim])} <= {"arrived"}
    others.settle(last[14:])
    db.do("reset lock_timeout")
    edges.advance()
    assert db.places(seqs[-1]) == ["ready"]
    assert edges.are_consistent()


def test_child_that_is_retried_while_its_parent_fails_is_cancelled(
    db: StoreClient, other: StoreClient, edges: Edges, others: Edges
) -> None:
    flow = edges.flow()
    parent = edges.submit(flow=flow)
    child = edges.submit(after=[parent], flow=flow)
    edges.claim(parent)
    db.one("select laneway.cancel(%s::bigint, 'me', null)", child)
    db.begin()
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 1
    others.end(parent, kind="giveup")
    assert other.run(statements.advance()).is_busy
    db.commit()
    others.advance()
    assert [edges.status(seq) for seq in (parent, child)] == ["failed", "cancelled"]
    assert others.arrivals() == []
    assert edges.are_consistent()
