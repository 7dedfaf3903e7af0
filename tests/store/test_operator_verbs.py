"""Cancel, reprioritize, retry, delete: each meets the job where it is, also while it moves."""

from __future__ import annotations

import pytest

from laneway.errors import InvalidInput
from laneway.store import jobs, lanes
from tests.store.approvals import analyzing, publish
from tests.store.desk import Desk, error


def test_a_waiting_job_is_cancelled_at_once_and_never_starts(desk: Desk) -> None:
    for seq in (desk.submit(unique_key="a"), desk.submit(unique_key="b", delay=60)):
        assert desk.cancel(seq, "ann", "not needed").found_in == "approved"
        assert desk.places(seq) == ["outcome"]
        row = desk.row("outcome", seq)
        assert (row["status"], row["attempt"], row["claimed_at"]) == ("cancelled", 0, None)
        assert (row["cancel_by"], row["cancel_reason"]) == ("ann", "not needed")
        assert row["cancel_requested_at"] == row["finished_at"]
    assert desk.claimed() == []
    assert desk.one("select count(*) from laneway.job_keys") == 0


def test_a_cancel_of_a_running_job_names_its_worker_and_is_kept_once(desk: Desk) -> None:
    claim = desk.running()
    assert desk.cancel(claim.seq, "ann", "first") == jobs.FoundState(
        "running", desk.worker, "default"
    )
    asked = desk.row("lease", claim.seq)["cancel_requested_at"]
    assert desk.cancel(claim.seq, "bob", "second") == jobs.FoundState(
        "running", desk.worker, "default"
    )
    lease = desk.row("lease", claim.seq)
    assert lease["cancel_requested_at"] == asked
    assert (lease["cancel_by"], lease["cancel_reason"]) == ("ann", "first")


def test_a_second_cancel_of_an_ended_job_changes_nothing(desk: Desk) -> None:
    seq = desk.submit()
    desk.cancel(seq, "ann")
    before = desk.row("outcome", seq)
    assert desk.cancel(seq, "bob").found_in == "cancelled"
    assert desk.row("outcome", seq) == before
    claim = desk.running()
    desk.settle(claim, "finish")
    assert desk.cancel(claim.seq).found_in == "completed"


def test_verbs_on_a_job_that_is_not_there_say_so(desk: Desk) -> None:
    seq = desk.submit()
    job_id = desk.id_of(seq)
    desk.cancel(seq)
    assert desk.run(jobs.delete(job_id)) == job_id
    assert desk.run(jobs.cancel(job_id, None, None)) == jobs.FoundState(None)
    assert desk.run(jobs.reprioritize(job_id, 1)) == jobs.FoundState(None)
    assert desk.run(jobs.retry(job_id)) == jobs.FoundState(None)
    assert desk.run(jobs.delete(job_id)) is None
    assert desk.run(jobs.get(job_id)) is None
    assert desk.run(jobs.wait(job_id)) is None
    assert desk.one("select found_in from laneway.cancel(%s, 'x', null)", seq) is None
    assert desk.one("select found_in from laneway.retry(%s)", seq) is None


def test_a_cancel_that_waits_for_a_claim_finds_the_job_running(desk: Desk, other: Desk) -> None:
    seq = desk.submit()
    other.begin()
    (claim,) = other.claimed()
    waiting = desk.later(lambda: desk.cancel(seq, "ann"))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20) == jobs.FoundState("running", other.worker, "default")
    answer = other.settle(claim, "finish")
    assert answer is not None
    assert (answer.answer, answer.status) == ("cancel_requested", "cancelled")


def test_a_cancel_that_waits_for_a_claim_that_rolls_back_cancels_at_once(
    desk: Desk, other: Desk
) -> None:
    seq = desk.submit()
    other.begin()
    other.claimed()
    waiting = desk.later(lambda: desk.cancel(seq))
    other.await_blocked(desk)
    other.rollback()
    assert waiting.result(20).found_in == "approved"
    assert desk.claimed() == []
    assert desk.slots_agree()


@pytest.mark.parametrize(
    "kind, met, status",
    [
        ("finish", "completed", "completed"),
        ("giveup", "failed", "failed"),
        ("release", "approved", "cancelled"),
        ("fail", "approved", "cancelled"),
    ],
)
def test_a_cancel_that_waits_for_a_settle_follows_the_job(
    desk: Desk, other: Desk, kind: str, met: str, status: str
) -> None:
    claim = desk.running()
    other.begin()
    other.settle(claim, kind, error=error())
    waiting = desk.later(lambda: desk.cancel(claim.seq))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).found_in == met
    assert desk.row("outcome", claim.seq)["status"] == status
    assert desk.places(claim.seq) == ["outcome"]


def test_a_cancel_of_waiting_jobs_spares_one_that_runs(desk: Desk) -> None:
    claim = desk.running()
    assert desk.cancel(claim.seq, only="waiting") == jobs.FoundState("running", None, "default")
    assert desk.row("lease", claim.seq)["cancel_requested_at"] is None
    desk.settle(claim, "finish")
    assert desk.cancel(claim.seq, only="waiting").found_in == "completed"
    for seq in (desk.submit(), desk.submit(delay=60)):
        assert desk.cancel(seq, only="waiting").found_in == "approved"
        assert desk.places(seq) == ["outcome"]


def test_a_cancel_of_running_jobs_spares_one_that_waits(desk: Desk) -> None:
    for seq in (desk.submit("other"), desk.submit("other", delay=60)):
        assert desk.cancel(seq, only="running") == jobs.FoundState("approved", None, "default")
        assert desk.places(seq) != ["outcome"]
    claim = desk.running()
    assert desk.cancel(claim.seq, only="running").concerns == desk.worker
    desk.settle(claim, "finish")
    assert desk.cancel(claim.seq, only="running").found_in == "cancelled"


def test_an_analysis_that_runs_is_of_a_job_that_waits(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    analyzing(desk)
    assert desk.cancel(seq, only="running") == jobs.FoundState("pending", None, "default")
    assert desk.cancel(seq, only="waiting") == jobs.FoundState("pending", desk.worker, "default")


def test_a_job_claimed_while_it_was_to_be_cancelled_waiting_runs_on(
    desk: Desk, other: Desk
) -> None:
    seq = desk.submit()
    other.begin()
    (claim,) = other.claimed()
    waiting = desk.later(lambda: desk.cancel(seq, only="waiting"))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20) == jobs.FoundState("running", None, "default")
    assert other.settle(claim, "finish") is None
    assert desk.row("outcome", seq)["status"] == "completed"


@pytest.mark.parametrize("kind, met", [("finish", "completed"), ("release", "approved")])
def test_a_job_that_ends_while_it_was_to_be_cancelled_running_is_left_as_it_is(
    desk: Desk, other: Desk, kind: str, met: str
) -> None:
    claim = desk.running()
    other.begin()
    other.settle(claim, kind)
    waiting = desk.later(lambda: desk.cancel(claim.seq, only="running"))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20) == jobs.FoundState(met, None, "default")
    assert desk.one("select status from laneway.jobs_view where seq = %s", claim.seq) == met


def test_a_cancel_that_waits_for_a_promotion_finds_the_job_due(desk: Desk, other: Desk) -> None:
    seq = desk.submit(delay=60)
    desk.do("update laneway.delayed set run_at = clock_timestamp()")
    other.begin()
    assert other.run(lanes.peek(["t"])).promoted == ["t"]
    waiting = desk.later(lambda: desk.cancel(seq))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).found_in == "approved"
    assert desk.places(seq) == ["outcome"]


def test_a_new_priority_counts_for_waiting_jobs_only(desk: Desk) -> None:
    due, later = desk.submit(), desk.submit(delay=60)
    for seq, place in ((due, "ready"), (later, "delayed")):
        assert desk.run(jobs.reprioritize(desk.id_of(seq), 9)).found_in == "approved"
        assert desk.row(place, seq)["rank"] == -9
    claim = desk.running("another")
    assert desk.run(jobs.reprioritize(claim.job_id, 9)).found_in == "running"
    desk.settle(claim, "finish")
    assert desk.run(jobs.reprioritize(claim.job_id, 9)).found_in == "completed"
    assert desk.row("outcome", claim.seq)["priority"] == 0


@pytest.mark.parametrize("priority", [-32769, 32768, 3_000_000, 2**31 - 1, -(2**31)])
def test_a_priority_that_no_claim_would_look_at_is_refused(desk: Desk, priority: int) -> None:
    seq = desk.submit()
    with pytest.raises(InvalidInput, match=r"^priority: "):
        desk.run(jobs.reprioritize(desk.id_of(seq), priority))
    with pytest.raises(InvalidInput, match=r"^priority: "):
        desk.submit(priority=priority)
    assert [c.seq for c in desk.claimed()] == [seq]


def test_a_new_priority_that_waits_for_a_claim_finds_the_job_running(
    desk: Desk, other: Desk
) -> None:
    seq = desk.submit()
    other.begin()
    other.claimed()
    waiting = desk.later(lambda: desk.run(jobs.reprioritize(desk.id_of(seq), 5)))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).found_in == "running"
    assert desk.row("lease", seq)["rank"] == 0


def test_a_claim_passes_over_a_job_whose_priority_is_being_changed(desk: Desk, other: Desk) -> None:
    seq = desk.submit()
    other.begin()
    other.run(jobs.reprioritize(desk.id_of(seq), 5))
    assert desk.claimed() == []
    other.commit()
    (claim,) = desk.claimed()
    assert desk.row("lease", claim.seq)["rank"] == -5


def test_a_retry_gives_a_new_budget_and_goes_on_counting_attempts(desk: Desk) -> None:
    claim = desk.running(max_retries=1, priority=2)
    desk.settle(claim, "fail", error=error(message="one"), delay_s=0)
    (claim,) = desk.claimed()
    desk.settle(claim, "fail", error=error(message="two"))
    assert desk.row("outcome", claim.seq)["status"] == "failed"
    assert desk.retry(claim.seq) == jobs.FoundState("failed", "t")
    row = desk.row("ready", claim.seq)
    assert (row["attempt"], row["retries"], row["rank"], row["fresh"]) == (2, 0, -2, False)
    assert desk.places(claim.seq) == ["ready"]
    (third,) = desk.claimed()
    assert third.attempt == 3
    attempts = desk.run(jobs.get_attempts(claim.job_id))
    assert [(a.attempt, a.outcome) for a in attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, None),
    ]
    assert [a.error.message for a in attempts if a.error] == ["one", "two"]


@pytest.mark.parametrize("state", ["approved", "delayed", "running", "completed"])
def test_only_failed_and_cancelled_jobs_are_retried(desk: Desk, state: str) -> None:
    if state in ("approved", "delayed"):
        seq = desk.submit(delay=60 if state == "delayed" else None)
    else:
        claim = desk.running()
        seq = claim.seq
        if state == "completed":
            desk.settle(claim, "finish")
    before = desk.places(seq)
    assert desk.retry(seq).found_in == ("approved" if state == "delayed" else state)
    assert desk.places(seq) == before


def test_a_job_cancelled_before_it_ran_is_retried_without_an_attempt_to_its_name(
    desk: Desk,
) -> None:
    seq = desk.submit()
    desk.cancel(seq)
    assert desk.retry(seq).found_in == "cancelled"
    assert desk.one("select count(*) from laneway.attempts") == 0
    assert [(c.seq, c.attempt) for c in desk.claimed()] == [(seq, 1)]


def test_a_retry_whose_key_another_live_job_holds_is_a_duplicate_and_changes_nothing(
    desk: Desk,
) -> None:
    seq = desk.submit(unique_key="k")
    desk.cancel(seq)
    holder = desk.submit(unique_key="k")
    assert holder != seq
    assert desk.retry(seq).found_in == "duplicate"
    assert desk.places(seq) == ["outcome"]
    desk.cancel(holder)
    assert desk.retry(seq).found_in == "cancelled"
    assert desk.one("select seq from laneway.job_keys") == seq


def test_a_delete_that_waits_for_a_retry_deletes_nothing(desk: Desk, other: Desk) -> None:
    seq = desk.submit()
    desk.cancel(seq)
    job_id = desk.id_of(seq)
    other.begin()
    other.retry(seq)
    waiting = desk.later(lambda: desk.run(jobs.delete(job_id)))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20) is None
    assert desk.places(seq) == ["ready"]


def test_a_retry_that_waits_for_a_delete_finds_nothing(desk: Desk, other: Desk) -> None:
    seq = desk.submit()
    desk.cancel(seq)
    job_id = desk.id_of(seq)
    other.begin()
    assert other.run(jobs.delete(job_id)) == job_id
    waiting = desk.later(lambda: desk.run(jobs.retry(job_id)))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).found_in is None
    assert desk.places(seq) == []


def test_two_retries_at_once_bring_the_job_back_once(desk: Desk, other: Desk) -> None:
    seq = desk.submit()
    desk.cancel(seq)
    other.begin()
    other.retry(seq)
    waiting = desk.later(lambda: desk.retry(seq))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).found_in == "approved"
    assert desk.places(seq) == ["ready"]


def test_a_delete_takes_everything_of_an_ended_job_and_nothing_of_a_live_one(desk: Desk) -> None:
    from laneway.store.leases import LogEntry, Report

    claim = desk.running()
    desk.report([Report(claim, done=1)], [LogEntry(claim, 1, "info", "m", 0)])
    assert desk.run(jobs.delete(claim.job_id)) is None
    desk.settle(claim, "fail", error=error(), delay_s=0)
    assert desk.run(jobs.delete(claim.job_id)) is None
    (claim,) = desk.claimed()
    desk.settle(claim, "finish")
    neighbour = desk.submit()
    assert desk.run(jobs.delete(claim.job_id)) == claim.job_id
    for table in ("outcome", "attempts", "progress", "logs"):
        assert desk.one(f"select count(*) from laneway.{table}") == 0
    assert desk.rows("select seq from laneway.jobs") == [(neighbour,)]
