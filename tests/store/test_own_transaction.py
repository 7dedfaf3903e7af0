"""Guard and finish in the caller's transaction: with its commit or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from laneway.domain.claim import Claim
from laneway.store import caller_transaction, jobs, leases
from laneway.store.leases import Verdict
from tests.store.desk import Desk


def finish(desk: Desk, claim: Claim, result: str = '"done"') -> str:
    return desk.run(caller_transaction.finish(claim, result, 1.0))


def test_a_finish_is_there_with_the_commit(desk: Desk, other: Desk) -> None:
    claim = desk.running(unique_key="k")
    other.begin()
    assert finish(other, claim) == "finished"
    assert desk.places(claim.seq) == ["lease"]
    other.commit()
    assert desk.places(claim.seq) == ["outcome"]
    row = desk.row("outcome", claim.seq)
    assert (row["status"], row["result"], row["attempt"]) == ("completed", "done", 1)
    assert (row["worker_id"], row["lane"], row["reclaimed"]) == (desk.worker, "default", False)
    assert row["started_at"] < row["claimed_at"] < row["finished_at"]
    assert desk.one("select count(*) from laneway.job_keys") == 0


def test_a_plain_finish_leaves_the_same_row(desk: Desk) -> None:
    ours, theirs = desk.running(), desk.running()
    finish(desk, ours)
    desk.settle(theirs, "finish", result='"done"', ran_s=1.0)
    times = ("seq", "claimed_at", "started_at", "finished_at")
    rows = [desk.row("outcome", c.seq) for c in (ours, theirs)]
    assert {k: v for k, v in rows[0].items() if k not in times} == {
        k: v for k, v in rows[1].items() if k not in times
    }


def test_nothing_is_left_of_a_finish_rolled_back(desk: Desk, other: Desk) -> None:
    claim = desk.running(unique_key="k")
    other.begin()
    finish(other, claim)
    other.rollback()
    assert desk.places(claim.seq) == ["lease"]
    assert desk.one("select count(*) from laneway.self_finished") == 0
    assert desk.one("select count(*) from laneway.job_keys") == 1
    assert desk.slots_agree()


def test_a_superseded_attempt_does_not_finish(desk: Desk) -> None:
    old = desk.running()
    desk.settle(old, "release")
    (new,) = desk.claimed(1)
    assert finish(desk, old) == "fenced"
    assert desk.places(old.seq) == ["lease"]
    assert finish(desk, new) == "finished"
    assert finish(desk, new) == "fenced"


def test_a_cancelled_attempt_does_not_finish(desk: Desk) -> None:
    claim = desk.running()
    desk.cancel(claim.seq)
    assert finish(desk, claim) == "cancel_requested"
    assert desk.places(claim.seq) == ["lease"]


def test_a_cancel_meets_the_job_completed_once_the_caller_commits(
    desk: Desk, another: Callable[[], Desk]
) -> None:
    claim, theirs, operator = desk.running(), another(), another()
    theirs.begin()
    finish(theirs, claim)
    asked = operator.later(lambda: operator.cancel(claim.seq))
    desk.await_blocked(operator)
    theirs.commit()
    assert asked.result(20).found_in == "completed"


def test_a_cancel_does_not_wait_out_an_open_finish(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    other.begin()
    finish(other, claim)
    assert desk.cancel(claim.seq) == jobs.FoundState("busy", None, "default")
    other.rollback()
    assert desk.cancel(claim.seq).found_in == "running"


def test_an_open_finish_keeps_no_claim_waiting(desk: Desk, other: Desk) -> None:
    """Slots, limits and keys are given back afterwards, so nothing a claim locks is held."""
    claim = desk.running()
    desk.submit()
    other.begin()
    finish(other, claim)
    desk.do("set lock_timeout = '1ms'")
    try:
        assert len(desk.claimed(1)) == 1
        assert desk.heartbeat([claim])[0].answer == "busy"
        assert desk.settle(claim, "finish") == leases.WriteResult(claim.seq, 1, "busy", None)
    finally:
        desk.do("reset lock_timeout")
    other.commit()
    assert desk.heartbeat([claim])[0].answer == "fenced"


def test_a_confirmed_finish_gives_the_slot_back(desk: Desk) -> None:
    claim = desk.running()
    finish(desk, claim)
    assert not desk.slots_agree()
    answer = desk.settle(claim, "confirm")
    assert answer is not None
    assert (answer.answer, answer.status) == ("accepted", "completed")
    assert desk.slots_agree()
    again = desk.settle(claim, "confirm")
    assert again is not None
    assert (again.answer, again.status) == ("accepted", "completed")
    assert desk.slots_agree()


def test_a_finish_rolled_back_is_a_failure_when_it_is_confirmed(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    other.begin()
    finish(other, claim)
    assert desk.settle(claim, "confirm") == leases.WriteResult(claim.seq, 1, "busy", None)
    other.rollback()
    answer = desk.settle(claim, "confirm", error='{"type": "RolledBack", "message": "undone"}')
    assert answer is not None
    assert (answer.answer, answer.status) == ("accepted", "approved")
    assert desk.row("attempts", claim.seq)["error"]["type"] == "RolledBack"


def test_a_finish_in_a_frozen_snapshot_comes_first_or_fails_to_serialize(
    desk: Desk, other: Desk
) -> None:
    claim = desk.running()
    other.do("begin isolation level repeatable read")
    other.one("select 1")
    desk.heartbeat([claim])
    with pytest.raises(psycopg.errors.SerializationFailure):
        other.do("select laneway.finish_apart(%s, 1, 'null', 0)", claim.seq)
    other.rollback()
    other.do("begin isolation level repeatable read")
    assert finish(other, claim) == "finished"
    assert desk.heartbeat([claim])[0].answer == "busy"
    other.commit()
    assert desk.row("outcome", claim.seq)["status"] == "completed"


# -- guard ------------------------------------------------------------------------------------


def test_a_guarded_attempt_is_renewed_and_not_taken_back(
    desk: Desk, another: Callable[[], Desk]
) -> None:
    claim, handler, watchdog = desk.running(), another(), another()
    handler.begin()
    assert handler.run(caller_transaction.guard(claim)).answer == "held"
    assert desk.heartbeat([claim]) == []
    lapsed = "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"
    desk.do(lapsed)
    assert watchdog.run(leases.watch(watchdog.worker, 10.0)).reclaimed == 0
    assert desk.places(claim.seq) == ["lease"]
    handler.commit()
    assert watchdog.run(leases.watch(watchdog.worker, 10.0)).reclaimed == 1
    handler.begin()
    assert handler.run(caller_transaction.guard(claim)).answer == "fenced"
    handler.rollback()


def test_a_guarded_attempt_can_be_cancelled_and_reports(desk: Desk, other: Desk) -> None:
    claim = desk.running()
    other.begin()
    other.run(caller_transaction.guard(claim))
    assert desk.report([leases.Report(claim, done=1.0)]) == []
    assert desk.cancel(claim.seq).found_in == "running"
    assert other.run(caller_transaction.guard(claim)).answer == "cancel_requested"
    other.rollback()


def test_a_guard_finds_a_superseded_attempt(desk: Desk) -> None:
    claim = desk.running()
    desk.settle(claim, "release")
    assert desk.run(caller_transaction.guard(claim)).answer == "fenced"


def test_a_guard_outside_of_a_transaction_can_be_told(desk: Desk) -> None:
    claim = desk.running()
    assert not desk.run(
        caller_transaction.is_still_in(desk.run(caller_transaction.guard(claim)).xid)
    )
    desk.begin()
    held = desk.run(caller_transaction.guard(claim))
    desk.do("savepoint deeper")
    assert desk.run(caller_transaction.is_still_in(held.xid))
    desk.rollback()


@pytest.mark.parametrize("kind", ["fail", "snooze", "release", "cancel", "giveup"])
def test_whatever_is_said_after_a_finish_changes_nothing(desk: Desk, kind: str) -> None:
    claim = desk.running()
    finish(desk, claim)
    more: dict[str, Any] = {"delay_s": 1.0} if kind == "snooze" else {}
    (answer,) = desk.run(leases.settle([Verdict(claim, kind, **more)]))
    assert answer.answer == "fenced"
    assert desk.row("outcome", claim.seq)["status"] == "completed"
