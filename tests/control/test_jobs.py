"""Laws of the operator's verbs on jobs."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway.control import explain, freeze, history, jobs, lanes, limits, schedules
from laneway.domain.approval import analysis_of
from laneway.domain.claim import Claim
from laneway.domain.filter import JobFilter
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput, NotFound, Refused
from laneway.store import notify
from laneway.store.database import Database
from laneway.store.statement import Statement
from tests.support.job_factory import JobFactory


async def test_every_verb_on_unknown_job_is_not_found(db: Database) -> None:
    nobody = uuid4()
    for verb in (
        jobs.show(db, nobody),
        jobs.cancel(db, nobody, by="me"),
        jobs.reprioritize(db, nobody, 1, by="me"),
        jobs.retry(db, nobody, by="me"),
        jobs.delete(db, nobody, by="me"),
        anext(jobs.follow(db, nobody)),
    ):
        with pytest.raises(NotFound, match=str(nobody)):
            await verb


async def test_running_job_has_started_and_one_that_is_analyzed_has_not(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", has_analysis=True)
    analyzed = factory.submit("costly")
    assert len(factory.claim(analysis_of("costly"))) == 1
    claim = factory.running()
    running = await jobs.show(db, claim.job_id)
    assert running.started_at == running.claimed_at == running.attempts[0].started_at
    assert running.started_at is not None
    waiting = await jobs.show(db, analyzed)
    assert (waiting.status, waiting.started_at) == (Status.PENDING, None)
    factory.settle(claim, "release")
    assert (await jobs.show(db, claim.job_id)).started_at is None


async def test_show_lists_every_attempt(db: Database, factory: JobFactory) -> None:
    factory.register()
    claim = factory.running()
    factory.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=0.0)
    (again,) = factory.claim()
    job = await jobs.show(db, claim.job_id)
    assert job.status is Status.RUNNING
    assert [(a.attempt, a.outcome) for a in job.attempts] == [(1, "failed"), (2, None)]
    assert job.attempts[0].error is not None
    assert job.attempts[0].error.message == "m"
    assert again.attempt == job.attempt == 2


async def test_pages_follow_each_other_without_a_gap(db: Database, factory: JobFactory) -> None:
    made = [factory.submit() for _ in range(5)]
    seen = []
    cursor = None
    while True:
        page = await jobs.listing(db, JobFilter(job_type="greet"), limit=2, cursor=cursor)
        seen += [job.id for job in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize("limit,cursor", [(0, None), (201, None), (1, "x"), (1, "-1"), (1, "٣")])
async def test_page_outside_the_rules_is_refused(
    db: Database, limit: int, cursor: str | None
) -> None:
    with pytest.raises(InvalidInput):
        await jobs.listing(db, JobFilter(), limit=limit, cursor=cursor)


async def test_cancelling_waiting_job_ends_it_without_wake_up(
    db: Database, factory: JobFactory
) -> None:
    job_id = factory.submit()
    with factory.listening() as heard:
        job = await jobs.cancel(db, job_id, by="me", reason="why not")
    assert job.status is Status.CANCELLED
    assert heard == []


async def test_cancelling_a_running_job_reaches_its_worker(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    with factory.listening() as heard:
        job = await jobs.cancel(db, claim.job_id, by="me")
    assert job.status is Status.RUNNING
    assert job.cancel_requested_at is not None
    assert heard == [f"cancel {factory.worker_id}"]


async def test_ended_job_cannot_be_cancelled(db: Database, factory: JobFactory) -> None:
    job_id = factory.completed()
    with pytest.raises(Refused, match="completed"):
        await jobs.cancel(db, job_id, by="me")


async def test_lost_signal_does_not_fail_the_verb(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(message: str) -> Statement[None]:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(notify, "wake", unavailable)
    assert (await jobs.cancel(db, factory.submit(), by="me")).status is Status.CANCELLED


async def test_only_waiting_jobs_take_another_priority(db: Database, factory: JobFactory) -> None:
    waiting, running = factory.submit(), factory.running("other").job_id
    assert (await jobs.reprioritize(db, waiting, -7, by="me")).priority == -7
    with pytest.raises(Refused, match="running"):
        await jobs.reprioritize(db, running, 1, by="me")
    with pytest.raises(InvalidInput, match="priority"):
        await jobs.reprioritize(db, waiting, 40000, by="me")


async def test_retry_lets_a_failed_job_wait_again_and_wakes_workers(
    db: Database, factory: JobFactory
) -> None:
    job_id = factory.failed()
    with factory.listening() as heard:
        job = await jobs.retry(db, job_id, by="me")
    assert (job.status, job.retries, job.attempt) == (Status.APPROVED, 0, 1)
    assert heard == ["wake greet"]


async def test_retried_job_waits_again_for_what_has_not_completed(
    db: Database, factory: JobFactory
) -> None:
    parent = factory.running()
    row = factory.conn.execute(
        "select job_id from laneway.submit('greet', after => %s)", [[parent.job_id]]
    ).fetchone()
    assert row is not None
    child = UUID(str(row[0]))
    await jobs.cancel(db, child, by="me")
    assert (await jobs.retry(db, child, by="me")).status is Status.WAITING


async def test_neither_completed_nor_live_jobs_are_retried(
    db: Database, factory: JobFactory
) -> None:
    for job_id in (factory.completed(), factory.running("b").job_id, factory.submit("c")):
        with pytest.raises(Refused, match="only failed and cancelled"):
            await jobs.retry(db, job_id, by="me")


async def test_retry_respects_the_unique_key_of_a_live_job(
    db: Database, factory: JobFactory
) -> None:
    job_id = factory.failed(unique_key="k")
    factory.submit(unique_key="k")
    with pytest.raises(Refused, match="unique_key"):
        await jobs.retry(db, job_id, by="me")


async def test_only_ended_jobs_are_deleted(db: Database, factory: JobFactory) -> None:
    ended, running, waiting = factory.completed(), factory.running("b").job_id, factory.submit("c")
    for job_id in (running, waiting):
        with pytest.raises(Refused, match="cancel it first"):
            await jobs.delete(db, job_id, by="me")
    await jobs.delete(db, ended, by="me")
    with pytest.raises(NotFound):
        await jobs.show(db, ended)


async def test_follow_yields_each_change_once_until_job_ends(
    db: Database, factory: JobFactory
) -> None:
    job_id = factory.submit()
    seen: list[Status] = []
    held: list[Claim] = []
    async for job in jobs.follow(db, job_id, interval=0):
        seen.append(job.status)
        if job.status is Status.APPROVED:
            held = await asyncio.to_thread(factory.claim)
        elif job.status is Status.RUNNING:
            await asyncio.to_thread(factory.settle, held[0])
    assert seen == [Status.APPROVED, Status.RUNNING, Status.COMPLETED]


@pytest.mark.parametrize("priority", ["5", 5.0, True, None, 10**400])
async def test_invalid_priority_is_refused(
    db: Database, factory: JobFactory, priority: Any
) -> None:
    with pytest.raises(InvalidInput, match="priority: must be a whole number"):
        await jobs.reprioritize(db, factory.submit(), priority, by="me")


@pytest.mark.parametrize("limit", ["x", "5", 0, 201, True, 2.0, 10**400])
async def test_page_has_a_whole_number_of_rows(db: Database, limit: Any) -> None:
    await schedules.put(db, "nightly", {"job_type": "t", "cron": "@daily"}, by="me")
    for ask in (
        lambda: jobs.listing(db, JobFilter(), limit=limit),
        lambda: schedules.slots(db, "nightly", limit=limit),
        lambda: history.history(db, "lane", limit=limit),
    ):
        with pytest.raises(InvalidInput, match="limit: must be a whole number from 1 to 200"):
            await ask()


@pytest.mark.parametrize("by", ["", "a\ud800", " ann", "ann\n", 7])
async def test_no_verb_takes_a_name_that_no_row_should_hold(
    db: Database, factory: JobFactory, by: Any
) -> None:
    job_id, ended = factory.submit(), factory.completed("b")
    for ask in (
        lambda: jobs.cancel(db, job_id, by=by),
        lambda: jobs.reprioritize(db, job_id, 5, by=by),
        lambda: jobs.retry(db, ended, by=by),
        lambda: jobs.delete(db, ended, by=by),
        lambda: lanes.create(db, {"name": "new"}, by=by),
        lambda: lanes.tune(db, "system", {"max_slots": 2}, by=by),
        lambda: lanes.drain(db, "system", by=by),
        lambda: lanes.resume(db, "system", by=by),
        lambda: lanes.move_type(db, "t", "system", by=by),
        lambda: lanes.pause(db, by=by),
        lambda: lanes.resume_all(db, by=by),
        lambda: limits.tune(db, "openai", {"max_concurrent": 2}, by=by),
        lambda: limits.delete(db, "openai", by=by),
        lambda: schedules.put(db, "x", {"job_type": "t", "cron": "@daily"}, by=by),
        lambda: schedules.enable(db, "x", by=by),
        lambda: schedules.disable(db, "x", by=by),
        lambda: schedules.delete(db, "x", by=by),
        lambda: schedules.run_now(db, "x", by=by),
        lambda: freeze.freeze(db, by=by),
        lambda: freeze.thaw(db, by=by),
        lambda: history.rollback(db, "lane", "system", by=by),
    ):
        with pytest.raises(InvalidInput) as refused:
            await ask()
        assert refused.value.field == "by"


@pytest.mark.parametrize("at", ["33715-01-01Z", "0044-03-15Z BC"])
async def test_date_that_python_cannot_hold_stops_no_reader(
    db: Database, factory: JobFactory, at: str
) -> None:
    job_id, other = factory.submit(delay=60.0), factory.submit()
    factory.conn.execute(
        "update laneway.jobs set run_at = %s::timestamptz where id = %s", (at, job_id)
    )
    factory.conn.execute("update laneway.delayed set run_at = %s::timestamptz", (at,))
    assert {job.id for job in (await jobs.listing(db, JobFilter())).items} == {job_id, other}
    shown = await jobs.show(db, job_id)
    assert shown.run_at is not None
    assert shown.run_at.year == (9999 if at.startswith("3") else 1)
    assert (await explain.explain(db, job_id)).reasons
    assert (await jobs.cancel(db, job_id, by="ann")).status is Status.CANCELLED
