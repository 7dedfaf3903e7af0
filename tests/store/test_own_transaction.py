"""Guard and finish in the caller's transaction: with its commit or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from laneway.domain.claim import Claim
from laneway.store import caller_transaction, jobs, leases
from laneway.store.leases import Verdict
from tests.support.store_client import StoreClient


def finish(db: StoreClient, claim: Claim, result: str = '"done"') -> str:
    return db.run(caller_transaction.finish(claim, result, 1.0))


def test_finish_is_there_with_the_commit(db: StoreClient, other: StoreClient) -> None:
    claim = db.running(unique_key="k")
    other.begin()
    assert finish(other, claim) == "finished"
    assert db.places(claim.seq) == ["lease"]
    other.commit()
    assert db.places(claim.seq) == ["outcome"]
    row = db.row("outcome", claim.seq)
    assert (row["status"], row["result"], row["attempt"]) == ("completed", "done", 1)
    assert (row["worker_id"], row["lane"], row["reclaimed"]) == (db.worker, "default", False)
    assert row["started_at"] < row["claimed_at"] < row["finished_at"]
    assert db.one("select count(*) from laneway.job_keys") == 0


def test_plain_finish_leaves_the_same_row(db: StoreClient) -> None:
    ours, theirs = db.running(), db.running()
    finish(db, ours)
    db.settle(theirs, "finish", result='"done"', ran_s=1.0)
    times = ("seq", "claimed_at", "started_at", "finished_at")
    rows = [db.row("outcome", c.seq) for c in (ours, theirs)]
    assert {k: v for k, v in rows[0].items() if k not in times} == {
        k: v for k, v in rows[1].items() if k not in times
    }


def test_nothing_is_left_of_a_finish_rolled_back(db: StoreClient, other: StoreClient) -> None:
    claim = db.running(unique_key="k")
    other.begin()
    finish(other, claim)
    other.rollback()
    assert db.places(claim.seq) == ["lease"]
    assert db.one("select count(*) from laneway.self_finished") == 0
    assert db.one("select count(*) from laneway.job_keys") == 1
    assert db.slots_agree()


def test_superseded_attempt_does_not_finish(db: StoreClient) -> None:
    old = db.running()
    db.settle(old, "release")
    (new,) = db.claimed(1)
    assert finish(db, old) == "fenced"
    assert db.places(old.seq) == ["lease"]
    assert finish(db, new) == "finished"
    assert finish(db, new) == "fenced"


def test_cancelled_attempt_does_not_finish(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq)
    assert finish(db, claim) == "cancel_requested"
    assert db.places(claim.seq) == ["lease"]


def test_cancel_meets_the_job_completed_once_the_caller_commits(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    claim, theirs, operator = db.running(), another(), another()
    theirs.begin()
    finish(theirs, claim)
    asked = operator.later(lambda: operator.cancel(claim.seq))
    db.await_blocked(operator)
    theirs.commit()
    assert asked.result(20).found_in == "completed"


def test_cancel_does_not_wait_out_an_open_finish(db: StoreClient, other: StoreClient) -> None:
    claim = db.running()
    other.begin()
    finish(other, claim)
    assert db.cancel(claim.seq) == jobs.FoundState("busy", None, "default")
    other.rollback()
    assert db.cancel(claim.seq).found_in == "running"


def test_open_finish_keeps_no_claim_waiting(db: StoreClient, other: StoreClient) -> None:
    """Slots, limits and keys are released later, so no lock of claims is held."""
    claim = db.running()
    db.submit()
    other.begin()
    finish(other, claim)
    db.do("set lock_timeout = '1ms'")
    try:
        assert len(db.claimed(1)) == 1
        assert db.heartbeat([claim])[0].answer == "busy"
        assert db.settle(claim, "finish") == leases.WriteResult(claim.seq, 1, "busy", None)
    finally:
        db.do("reset lock_timeout")
    other.commit()
    assert db.heartbeat([claim])[0].answer == "fenced"


def test_confirmed_finish_gives_the_slot_back(db: StoreClient) -> None:
    claim = db.running()
    finish(db, claim)
    assert not db.slots_agree()
    answer = db.settle(claim, "confirm")
    assert answer is not None
    assert (answer.answer, answer.status) == ("accepted", "completed")
    assert db.slots_agree()
    again = db.settle(claim, "confirm")
    assert again is not None
    assert (again.answer, again.status) == ("accepted", "completed")
    assert db.slots_agree()


def test_finish_rolled_back_is_a_failure_when_it_is_confirmed(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    other.begin()
    finish(other, claim)
    assert db.settle(claim, "confirm") == leases.WriteResult(claim.seq, 1, "busy", None)
    other.rollback()
    answer = db.settle(claim, "confirm", error='{"type": "RolledBack", "message": "undone"}')
    assert answer is not None
    assert (answer.answer, answer.status) == ("accepted", "approved")
    assert db.row("attempts", claim.seq)["error"]["type"] == "RolledBack"


def test_finish_in_a_frozen_snapshot_comes_first_or_fails_to_serialize(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    other.do("begin isolation level repeatable read")
    other.one("select 1")
    db.heartbeat([claim])
    with pytest.raises(psycopg.errors.SerializationFailure):
        other.do("select laneway.finish_in_transaction(%s, 1, 'null', 0)", claim.seq)
    other.rollback()
    other.do("begin isolation level repeatable read")
    assert finish(other, claim) == "finished"
    assert db.heartbeat([claim])[0].answer == "busy"
    other.commit()
    assert db.row("outcome", claim.seq)["status"] == "completed"


# -- guard ------------------------------------------------------------------------------------


def test_guarded_attempt_is_renewed_and_not_taken_back(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    claim, handler, watchdog = db.running(), another(), another()
    handler.begin()
    assert handler.run(caller_transaction.guard(claim)).answer == "held"
    assert db.heartbeat([claim]) == []
    lapsed = "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"
    db.do(lapsed)
    assert watchdog.run(leases.run_watchdog(watchdog.worker, 10.0)).reclaimed == 0
    assert db.places(claim.seq) == ["lease"]
    handler.commit()
    assert watchdog.run(leases.run_watchdog(watchdog.worker, 10.0)).reclaimed == 1
    handler.begin()
    assert handler.run(caller_transaction.guard(claim)).answer == "fenced"
    handler.rollback()


def test_guarded_attempt_can_be_cancelled_and_reports(db: StoreClient, other: StoreClient) -> None:
    claim = db.running()
    other.begin()
    other.run(caller_transaction.guard(claim))
    assert db.report([leases.Report(claim, done=1.0)]) == []
    assert db.cancel(claim.seq).found_in == "running"
    assert other.run(caller_transaction.guard(claim)).answer == "cancel_requested"
    other.rollback()


def test_guard_finds_a_superseded_attempt(db: StoreClient) -> None:
    claim = db.running()
    db.settle(claim, "release")
    assert db.run(caller_transaction.guard(claim)).answer == "fenced"


def test_guard_outside_transaction_is_detected(db: StoreClient) -> None:
    claim = db.running()
    assert not db.run(caller_transaction.is_still_in(db.run(caller_transaction.guard(claim)).xid))
    db.begin()
    held = db.run(caller_transaction.guard(claim))
    db.do("savepoint deeper")
    assert db.run(caller_transaction.is_still_in(held.xid))
    db.rollback()


@pytest.mark.parametrize("kind", ["fail", "snooze", "release", "cancel", "giveup"])
def test_writes_after_finish_change_nothing(db: StoreClient, kind: str) -> None:
    claim = db.running()
    finish(db, claim)
    more: dict[str, Any] = {"delay_s": 1.0} if kind == "snooze" else {}
    (answer,) = db.run(leases.settle([Verdict(claim, kind, **more)]))
    assert answer.answer == "fenced"
    assert db.row("outcome", claim.seq)["status"] == "completed"
