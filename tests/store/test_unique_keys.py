"""At most one job that is not terminal per workspace, job type and key."""

from __future__ import annotations

from uuid import UUID

import pytest

from laneway.domain.job import NewJob, new_job_id
from laneway.store import jobs, unique_keys
from laneway.store.jobs import SubmitResult
from tests.support.store_client import StoreClient, error


def submit(db: StoreClient, key: str = "k", **more: object) -> SubmitResult:
    job = NewJob(id=new_job_id(), unique_key=key, **{"job_type": "t", **more})  # type: ignore[arg-type]
    return db.run(jobs.submit(job))


def test_second_submit_answers_the_first_job_and_stores_nothing(db: StoreClient) -> None:
    first = submit(db)
    again = submit(db)
    assert (first.duplicate, again) == (False, SubmitResult(first.id, "approved", True))
    db.claimed()
    assert submit(db) == SubmitResult(first.id, "running", True)
    assert db.one("select count(*) from laneway.jobs") == 1


def test_workspace_job_type_and_key_each_set_jobs_apart(db: StoreClient) -> None:
    answers = [
        submit(db),
        submit(db, "other"),
        submit(db, job_type="u"),
        submit(db, workspace="w"),
    ]
    assert not any(a.duplicate for a in answers)


def test_second_submit_waits_for_the_first_and_is_its_duplicate_after_commit(
    db: StoreClient, other: StoreClient
) -> None:
    other.begin()
    first = submit(other)
    waiting = db.later(lambda: submit(db))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20) == SubmitResult(first.id, "approved", True)


def test_second_submit_becomes_the_owner_when_the_first_is_rolled_back(
    db: StoreClient, other: StoreClient
) -> None:
    other.begin()
    first = submit(other)
    waiting = db.later(lambda: submit(db))
    other.await_blocked(db)
    other.rollback()
    second = waiting.result(20)
    assert second.duplicate is False
    assert second.id != first.id
    assert db.rows("select id from laneway.jobs") == [(second.id,)]


def test_submit_that_meets_the_end_of_the_holder_waits_and_becomes_the_owner(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running(unique_key="k")
    other.begin()
    other.settle(claim, "finish")
    waiting = db.later(lambda: submit(db))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).duplicate is False


@pytest.mark.parametrize("end", ["finish", "giveup", "cancel", "lost", "queued", "delayed"])
def test_every_end_frees_the_key(db: StoreClient, end: str) -> None:
    if end in ("queued", "delayed"):
        seq = db.submit(unique_key="k", delay=60 if end == "delayed" else None)
        db.cancel(seq)
    else:
        claim = db.running(unique_key="k", max_retries=0)
        db.settle(claim, end, error=error())
    assert db.one("select count(*) from laneway.job_keys") == 0
    assert submit(db).duplicate is False


@pytest.mark.parametrize("kind", ["release", "snooze", "fail", "stalled"])
def test_job_that_waits_again_keeps_its_key(db: StoreClient, kind: str) -> None:
    claim = db.running(unique_key="k")
    db.settle(claim, kind, error=error(), delay_s=30)
    assert submit(db) == SubmitResult(claim.job_id, "approved", True)


def test_end_of_an_old_holder_leaves_the_key_of_the_new_one(db: StoreClient) -> None:
    old = db.submit(unique_key="k")
    db.cancel(old)
    new = db.submit(unique_key="k")
    db.run(jobs.delete(db.id_of(old)))
    assert db.one("select seq from laneway.job_keys") == new


def test_keys_taken_in_bulk_go_to_the_first_of_equal_ones(db: StoreClient) -> None:
    new = [
        NewJob(id=new_job_id(), job_type="t", unique_key=key) for key in ("b", "a", "b", "c", "a")
    ]
    held = db.submit(unique_key="c")
    seqs = [1001, 1002, 1003, 1004, 1005]
    assert db.run(unique_keys.reserve(new, seqs)) == set(seqs[:2])
    assert db.rows("select unique_key, seq from laneway.job_keys order by 1") == [
        ("a", seqs[1]),
        ("b", seqs[0]),
        ("c", held),
    ]


def test_key_without_holder_is_reported_not_waited_for(db: StoreClient) -> None:
    db.do("insert into laneway.job_keys values ('default', 't', 'k', 10000000)")
    with pytest.raises(Exception, match="belongs to a job that does not exist"):
        submit(db)


def test_id_of_a_submit_is_the_callers(db: StoreClient) -> None:
    job_id = UUID(int=7)
    assert db.run(jobs.submit(NewJob(id=job_id, job_type="t"))).id == job_id
