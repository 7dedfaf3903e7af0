"""At most one job that is not terminal per workspace, job type and key."""

from __future__ import annotations

from uuid import UUID

import pytest

from laneway.domain.job import NewJob, new_job_id
from laneway.store import jobs
from laneway.store.jobs import SubmitResult
from tests.store.desk import Desk, error


def submit(desk: Desk, key: str = "k", **more: object) -> SubmitResult:
    job = NewJob(id=new_job_id(), unique_key=key, **{"job_type": "t", **more})  # type: ignore[arg-type]
    return desk.run(jobs.submit(job))


def test_a_second_submit_answers_the_first_job_and_stores_nothing(desk: Desk) -> None:
    first = submit(desk)
    again = submit(desk)
    assert (first.duplicate, again) == (False, SubmitResult(first.id, "approved", True))
    desk.claimed()
    assert submit(desk) == SubmitResult(first.id, "running", True)
    assert desk.one("select count(*) from laneway.jobs") == 1


def test_workspace_job_type_and_key_each_set_jobs_apart(desk: Desk) -> None:
    answers = [
        submit(desk),
        submit(desk, "other"),
        submit(desk, job_type="u"),
        submit(desk, workspace="w"),
    ]
    assert not any(a.duplicate for a in answers)


def test_a_second_submit_waits_for_the_first_and_is_its_duplicate_after_commit(
    desk: Desk, other: Desk
) -> None:
    other.begin()
    first = submit(other)
    waiting = desk.later(lambda: submit(desk))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20) == SubmitResult(first.id, "approved", True)


def test_a_second_submit_becomes_the_owner_when_the_first_is_rolled_back(
    desk: Desk, other: Desk
) -> None:
    other.begin()
    first = submit(other)
    waiting = desk.later(lambda: submit(desk))
    other.await_blocked(desk)
    other.rollback()
    second = waiting.result(20)
    assert second.duplicate is False
    assert second.id != first.id
    assert desk.rows("select id from laneway.jobs") == [(second.id,)]


def test_a_submit_that_meets_the_end_of_the_holder_waits_and_becomes_the_owner(
    desk: Desk, other: Desk
) -> None:
    claim = desk.running(unique_key="k")
    other.begin()
    other.settle(claim, "finish")
    waiting = desk.later(lambda: submit(desk))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).duplicate is False


@pytest.mark.parametrize("end", ["finish", "giveup", "cancel", "lost", "queued", "delayed"])
def test_every_end_frees_the_key(desk: Desk, end: str) -> None:
    if end in ("queued", "delayed"):
        seq = desk.submit(unique_key="k", delay=60 if end == "delayed" else None)
        desk.cancel(seq)
    else:
        claim = desk.running(unique_key="k", max_retries=0)
        desk.settle(claim, end, error=error())
    assert desk.one("select count(*) from laneway.job_keys") == 0
    assert submit(desk).duplicate is False


@pytest.mark.parametrize("kind", ["release", "snooze", "fail", "stalled"])
def test_a_job_that_waits_again_keeps_its_key(desk: Desk, kind: str) -> None:
    claim = desk.running(unique_key="k")
    desk.settle(claim, kind, error=error(), delay_s=30)
    assert submit(desk) == SubmitResult(claim.job_id, "approved", True)


def test_the_end_of_an_old_holder_leaves_the_key_of_the_new_one(desk: Desk) -> None:
    old = desk.submit(unique_key="k")
    desk.cancel(old)
    new = desk.submit(unique_key="k")
    desk.run(jobs.delete(desk.id_of(old)))
    assert desk.one("select seq from laneway.job_keys") == new


def test_keys_taken_in_bulk_go_to_the_first_of_equal_ones(desk: Desk) -> None:
    new = [
        NewJob(id=new_job_id(), job_type="t", unique_key=key) for key in ("b", "a", "b", "c", "a")
    ]
    held = desk.submit(unique_key="c")
    seqs = [1001, 1002, 1003, 1004, 1005]
    assert desk.run(jobs.reserve_keys(new, seqs)) == set(seqs[:2])
    assert desk.rows("select unique_key, seq from laneway.job_keys order by 1") == [
        ("a", seqs[1]),
        ("b", seqs[0]),
        ("c", held),
    ]


def test_a_key_held_by_nothing_is_told_not_waited_for(desk: Desk) -> None:
    desk.do("insert into laneway.job_keys values ('default', 't', 'k', 10000000)")
    with pytest.raises(Exception, match="held by a job that is not there"):
        submit(desk)


def test_the_id_of_a_submit_is_the_callers(desk: Desk) -> None:
    job_id = UUID(int=7)
    assert desk.run(jobs.submit(NewJob(id=job_id, job_type="t"))).id == job_id
