"""Operators' verbs on jobs: each works in every state, also during a transition."""

from __future__ import annotations

import pytest

from laneway.domain.approval import Approval, analysis_of
from laneway.errors import InvalidInput
from laneway.store import jobs, lanes
from tests.store.approvals import analyzing, publish
from tests.support.store_client import StoreClient, error


def test_waiting_job_is_cancelled_at_once_and_never_starts(db: StoreClient) -> None:
    for seq in (db.submit(unique_key="a"), db.submit(unique_key="b", delay=60)):
        assert db.cancel(seq, "ann", "not needed").found_in == "approved"
        assert db.places(seq) == ["outcome"]
        row = db.row("outcome", seq)
        assert (row["status"], row["attempt"], row["claimed_at"]) == ("cancelled", 0, None)
        assert (row["cancel_by"], row["cancel_reason"]) == ("ann", "not needed")
        assert row["cancel_requested_at"] == row["finished_at"]
    assert db.claimed() == []
    assert db.one("select count(*) from laneway.job_keys") == 0


def test_cancel_of_a_running_job_names_its_worker_and_is_kept_once(db: StoreClient) -> None:
    claim = db.running()
    assert db.cancel(claim.seq, "ann", "first") == jobs.FoundState("running", db.worker, "default")
    asked = db.row("lease", claim.seq)["cancel_requested_at"]
    assert db.cancel(claim.seq, "bob", "second") == jobs.FoundState("running", db.worker, "default")
    lease = db.row("lease", claim.seq)
    assert lease["cancel_requested_at"] == asked
    assert (lease["cancel_by"], lease["cancel_reason"]) == ("ann", "first")


def test_second_cancel_of_an_ended_job_changes_nothing(db: StoreClient) -> None:
    seq = db.submit()
    db.cancel(seq, "ann")
    before = db.row("outcome", seq)
    assert db.cancel(seq, "bob").found_in == "cancelled"
    assert db.row("outcome", seq) == before
    claim = db.running()
    db.settle(claim, "finish")
    assert db.cancel(claim.seq).found_in == "completed"


def test_verbs_on_missing_job_report_it(db: StoreClient) -> None:
    seq = db.submit()
    job_id = db.id_of(seq)
    db.cancel(seq)
    assert db.run(jobs.delete(job_id)) == job_id
    assert db.run(jobs.cancel(job_id, None, None)) == jobs.FoundState(None)
    assert db.run(jobs.reprioritize(job_id, 1)) == jobs.FoundState(None)
    assert db.run(jobs.retry(job_id)) == jobs.FoundState(None)
    assert db.run(jobs.run_now(job_id)) == jobs.MadeDue(None)
    assert db.run(jobs.delete(job_id)) is None
    assert db.run(jobs.get(job_id)) is None
    assert db.run(jobs.wait(job_id)) is None
    assert db.one("select found_in from laneway.cancel(%s, 'x', null)", seq) is None
    assert db.one("select found_in from laneway.retry(%s)", seq) is None
    assert db.one("select found_in from laneway.run_now(%s)", seq) is None


def test_cancel_that_waits_for_a_claim_finds_the_job_running(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit()
    other.begin()
    (claim,) = other.claimed()
    waiting = db.later(lambda: db.cancel(seq, "ann"))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == jobs.FoundState("running", other.worker, "default")
    answer = other.settle(claim, "finish")
    assert answer is not None
    assert (answer.answer, answer.status) == ("cancel_requested", "cancelled")


def test_cancel_that_waits_for_a_claim_that_rolls_back_cancels_at_once(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit()
    other.begin()
    other.claimed()
    waiting = db.later(lambda: db.cancel(seq))
    other.await_blocked(db)
    other.rollback()
    assert waiting.result(20).found_in == "approved"
    assert db.claimed() == []
    assert db.slots_agree()


@pytest.mark.parametrize(
    "kind, met, status",
    [
        ("finish", "completed", "completed"),
        ("giveup", "failed", "failed"),
        ("release", "approved", "cancelled"),
        ("fail", "approved", "cancelled"),
    ],
)
def test_cancel_that_waits_for_a_settle_follows_the_job(
    db: StoreClient, other: StoreClient, kind: str, met: str, status: str
) -> None:
    claim = db.running()
    other.begin()
    other.settle(claim, kind, error=error())
    waiting = db.later(lambda: db.cancel(claim.seq))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).found_in == met
    assert db.row("outcome", claim.seq)["status"] == status
    assert db.places(claim.seq) == ["outcome"]


def test_cancel_of_waiting_jobs_spares_one_that_runs(db: StoreClient) -> None:
    claim = db.running()
    assert db.cancel(claim.seq, only="waiting") == jobs.FoundState("running", None, "default")
    assert db.row("lease", claim.seq)["cancel_requested_at"] is None
    db.settle(claim, "finish")
    assert db.cancel(claim.seq, only="waiting").found_in == "completed"
    for seq in (db.submit(), db.submit(delay=60)):
        assert db.cancel(seq, only="waiting").found_in == "approved"
        assert db.places(seq) == ["outcome"]


def test_cancel_of_running_jobs_spares_one_that_waits(db: StoreClient) -> None:
    for seq in (db.submit("other"), db.submit("other", delay=60)):
        assert db.cancel(seq, only="running") == jobs.FoundState("approved", None, "default")
        assert db.places(seq) != ["outcome"]
    claim = db.running()
    assert db.cancel(claim.seq, only="running").concerns == db.worker
    db.settle(claim, "finish")
    assert db.cancel(claim.seq, only="running").found_in == "cancelled"


def test_analysis_that_runs_is_of_a_job_that_waits(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    analyzing(db)
    assert db.cancel(seq, only="running") == jobs.FoundState("pending", None, "default")
    assert db.cancel(seq, only="waiting") == jobs.FoundState("pending", db.worker, "default")


def test_job_claimed_while_it_was_to_be_cancelled_waiting_runs_on(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit()
    other.begin()
    (claim,) = other.claimed()
    waiting = db.later(lambda: db.cancel(seq, only="waiting"))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == jobs.FoundState("running", None, "default")
    assert other.settle(claim, "finish") is None
    assert db.row("outcome", seq)["status"] == "completed"


@pytest.mark.parametrize("kind, met", [("finish", "completed"), ("release", "approved")])
def test_job_that_ends_while_it_was_to_be_cancelled_running_is_left_as_it_is(
    db: StoreClient, other: StoreClient, kind: str, met: str
) -> None:
    claim = db.running()
    other.begin()
    other.settle(claim, kind)
    waiting = db.later(lambda: db.cancel(claim.seq, only="running"))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == jobs.FoundState(met, None, "default")
    assert db.one("select status from laneway.jobs_view where seq = %s", claim.seq) == met


def test_cancel_that_waits_for_a_promotion_finds_the_job_due(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit(delay=60)
    db.do("update laneway.delayed set run_at = clock_timestamp()")
    other.begin()
    assert other.run(lanes.peek(["t"])).promoted == ["t"]
    waiting = db.later(lambda: db.cancel(seq))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).found_in == "approved"
    assert db.places(seq) == ["outcome"]


def test_new_priority_counts_for_waiting_jobs_only(db: StoreClient) -> None:
    due, later = db.submit(), db.submit(delay=60)
    for seq, place in ((due, "ready"), (later, "delayed")):
        assert db.run(jobs.reprioritize(db.id_of(seq), 9)).found_in == "approved"
        assert db.row(place, seq)["rank"] == -9
    claim = db.running("another")
    assert db.run(jobs.reprioritize(claim.job_id, 9)).found_in == "running"
    db.settle(claim, "finish")
    assert db.run(jobs.reprioritize(claim.job_id, 9)).found_in == "completed"
    assert db.row("outcome", claim.seq)["priority"] == 0


@pytest.mark.parametrize("priority", [-32769, 32768, 3_000_000, 2**31 - 1, -(2**31)])
def test_priority_that_no_claim_would_look_at_is_refused(db: StoreClient, priority: int) -> None:
    seq = db.submit()
    with pytest.raises(InvalidInput, match=r"^priority: "):
        db.run(jobs.reprioritize(db.id_of(seq), priority))
    with pytest.raises(InvalidInput, match=r"^priority: "):
        db.submit(priority=priority)
    assert [c.seq for c in db.claimed()] == [seq]


def test_new_priority_that_waits_for_a_claim_finds_the_job_running(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit()
    other.begin()
    other.claimed()
    waiting = db.later(lambda: db.run(jobs.reprioritize(db.id_of(seq), 5)))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).found_in == "running"
    assert db.row("lease", seq)["rank"] == 0


def test_claim_passes_over_a_job_whose_priority_is_being_changed(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit()
    other.begin()
    other.run(jobs.reprioritize(db.id_of(seq), 5))
    assert db.claimed() == []
    other.commit()
    (claim,) = db.claimed()
    assert db.row("lease", claim.seq)["rank"] == -5


def test_retry_gives_a_new_budget_and_goes_on_counting_attempts(db: StoreClient) -> None:
    claim = db.running(max_retries=1, priority=2)
    db.settle(claim, "fail", error=error(message="one"), delay_s=0)
    (claim,) = db.claimed()
    db.settle(claim, "fail", error=error(message="two"))
    assert db.row("outcome", claim.seq)["status"] == "failed"
    assert db.retry(claim.seq) == jobs.FoundState("failed", "t")
    row = db.row("ready", claim.seq)
    assert (row["attempt"], row["retries"], row["rank"], row["fresh"]) == (2, 0, -2, False)
    assert db.places(claim.seq) == ["ready"]
    (third,) = db.claimed()
    assert third.attempt == 3
    attempts = db.run(jobs.get_attempts(claim.job_id))
    assert [(a.attempt, a.outcome) for a in attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, None),
    ]
    assert [a.error.message for a in attempts if a.error] == ["one", "two"]


def test_retried_job_keeps_a_run_at_that_has_not_come(db: StoreClient) -> None:
    seq = db.submit(delay=3600)
    due = db.row("delayed", seq)["run_at"]
    db.cancel(seq)
    assert db.retry(seq) == jobs.FoundState("cancelled")
    assert db.places(seq) == ["delayed"]
    row = db.row("delayed", seq)
    assert (row["run_at"], row["attempt"], row["retries"]) == (due, 0, 0)
    assert db.claimed() == []
    assert db.run(jobs.run_now(db.id_of(seq))).found_in == "approved"
    (claim,) = db.claimed()
    assert db.one("select run_at <= started_at from laneway.jobs_view where seq = %s", claim.seq)


@pytest.mark.parametrize("state", ["approved", "delayed", "running", "completed"])
def test_only_failed_and_cancelled_jobs_are_retried(db: StoreClient, state: str) -> None:
    if state in ("approved", "delayed"):
        seq = db.submit(delay=60 if state == "delayed" else None)
    else:
        claim = db.running()
        seq = claim.seq
        if state == "completed":
            db.settle(claim, "finish")
    before = db.places(seq)
    assert db.retry(seq).found_in == ("approved" if state == "delayed" else state)
    assert db.places(seq) == before


def test_job_cancelled_before_first_attempt_can_be_retried(
    db: StoreClient,
) -> None:
    seq = db.submit()
    db.cancel(seq)
    assert db.retry(seq).found_in == "cancelled"
    assert db.one("select count(*) from laneway.attempts") == 0
    assert [(c.seq, c.attempt) for c in db.claimed()] == [(seq, 1)]


def test_retry_with_unique_key_of_live_job_is_duplicate(
    db: StoreClient,
) -> None:
    seq = db.submit(unique_key="k")
    db.cancel(seq)
    holder = db.submit(unique_key="k")
    assert holder != seq
    assert db.retry(seq).found_in == "duplicate"
    assert db.places(seq) == ["outcome"]
    db.cancel(holder)
    assert db.retry(seq).found_in == "cancelled"
    assert db.one("select seq from laneway.job_keys") == seq


@pytest.mark.parametrize("verdict", ["delay", "snooze", "fail"])
def test_run_now_makes_a_job_due_that_waits_for_a_time(db: StoreClient, verdict: str) -> None:
    if verdict == "delay":
        seq = db.submit(delay=3600, priority=4)
    else:
        claim = db.running(priority=4)
        seq = claim.seq
        db.settle(claim, verdict, error=error() if verdict == "fail" else None, delay_s=3600)
    waits = db.row("delayed", seq)
    assert db.claimed() == []
    made = db.run(jobs.run_now(db.id_of(seq)))
    assert (made.found_in, made.job_type, made.was_due) == ("approved", "t", waits["run_at"])
    assert db.places(seq) == ["ready"]
    row = db.row("ready", seq)
    kept = ("rank", "attempt", "retries", "sealed")
    assert [row[name] for name in kept] == [waits[name] for name in kept]
    job = db.run(jobs.get(db.id_of(seq)))
    assert job is not None
    assert job.run_at is not None
    assert made.due is not None
    assert job.run_at <= made.due
    assert [c.seq for c in db.claimed()] == [seq]


def test_run_now_starts_a_waiting_analysis(db: StoreClient) -> None:
    publish(db, analysis=True)
    db.submit()
    claim = analyzing(db)
    db.settle(claim, "fail", error=error(), delay_s=3600)
    made = db.run(jobs.run_now(claim.job_id))
    assert (made.found_in, made.job_type) == ("pending", analysis_of("t"))
    assert db.places(claim.seq) == ["ready"]


@pytest.mark.parametrize(
    "state", ["due", "due_key", "awaiting_approval", "running", "completed", "failed", "pending"]
)
def test_run_now_changes_only_jobs_that_wait_for_a_time(db: StoreClient, state: str) -> None:
    if state == "awaiting_approval":
        publish(db, approval=Approval())
        seq = db.submit(delay=3600)
    elif state == "pending":
        publish(db, analysis=True)
        db.submit()
        seq = analyzing(db).seq
    elif state.startswith("due"):
        if state == "due_key":
            db.running(concurrency_key="k")
        seq = db.submit(concurrency_key="k" if state == "due_key" else None)
        assert state == "due" or db.claimed() == []
    else:
        claim = db.running()
        seq = claim.seq
        if state != "running":
            db.settle(claim, "finish" if state == "completed" else "giveup", error=error())
    before = db.places(seq)
    assert db.run(jobs.run_now(db.id_of(seq))) == jobs.MadeDue(state.removesuffix("_key"))
    assert db.places(seq) == before


def test_run_now_that_waits_for_a_poll_finds_the_job_due(
    db: StoreClient, other: StoreClient
) -> None:
    seq = db.submit(delay=3600)
    db.conn.execute("update laneway.delayed set run_at = clock_timestamp() + interval '1 hour'")
    other.begin()
    assert other.one("select promoted from laneway.peek('{}', now() + interval '2 hours')") == ["t"]
    waiting = db.later(lambda: db.run(jobs.run_now(db.id_of(seq))))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == jobs.MadeDue("due")
    assert db.places(seq) == ["ready"]


def test_delete_that_waits_for_a_retry_deletes_nothing(db: StoreClient, other: StoreClient) -> None:
    seq = db.submit()
    db.cancel(seq)
    job_id = db.id_of(seq)
    other.begin()
    other.retry(seq)
    waiting = db.later(lambda: db.run(jobs.delete(job_id)))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) is None
    assert db.places(seq) == ["ready"]


def test_retry_that_waits_for_a_delete_finds_nothing(db: StoreClient, other: StoreClient) -> None:
    seq = db.submit()
    db.cancel(seq)
    job_id = db.id_of(seq)
    other.begin()
    assert other.run(jobs.delete(job_id)) == job_id
    waiting = db.later(lambda: db.run(jobs.retry(job_id)))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).found_in is None
    assert db.places(seq) == []


def test_two_retries_at_once_bring_the_job_back_once(db: StoreClient, other: StoreClient) -> None:
    seq = db.submit()
    db.cancel(seq)
    other.begin()
    other.retry(seq)
    waiting = db.later(lambda: db.retry(seq))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).found_in == "approved"
    assert db.places(seq) == ["ready"]


def test_delete_takes_everything_of_an_ended_job_and_nothing_of_a_live_one(
    db: StoreClient,
) -> None:
    from laneway.store.leases import LogEntry, Report

    claim = db.running()
    db.report([Report(claim, done=1)], [LogEntry(claim, 1, "info", "m", 0)])
    assert db.run(jobs.delete(claim.job_id)) is None
    db.settle(claim, "fail", error=error(), delay_s=0)
    assert db.run(jobs.delete(claim.job_id)) is None
    (claim,) = db.claimed()
    db.settle(claim, "finish")
    neighbour = db.submit()
    assert db.run(jobs.delete(claim.job_id)) == claim.job_id
    for table in ("outcome", "attempts", "progress", "logs"):
        assert db.one(f"select count(*) from laneway.{table}") == 0
    assert db.rows("select seq from laneway.jobs") == [(neighbour,)]
