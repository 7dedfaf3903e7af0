"""Approvals and rejections, with messages that people can act on."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from laneway.control import approval, history, jobs, schedules
from laneway.domain.approval import Analysis, Approval, analysis_of
from laneway.domain.filter import JobFilter
from laneway.domain.states import Status
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store import approvals, leases
from laneway.store import schedules as schedule_store
from laneway.store.database import Database
from laneway.store.schedules import SlotEntry
from tests.support.job_factory import JobFactory

DEAR = Analysis(plan=["drop", "build"], cost=9, currency="EUR", warnings=["takes a day"])


@pytest.fixture
def waiting(factory: JobFactory) -> UUID:
    factory.publish("costly", approval=Approval(), has_analysis=True)
    return factory.analyzed(DEAR, created_by="ann")


async def test_approve_releases_job_and_records_decision(
    db: Database, factory: JobFactory, waiting: UUID
) -> None:
    with factory.listening() as heard:
        job = await approval.approve(db, waiting, by="bob", comment="worth it")
    assert heard == ["wake costly"]
    assert (job.status, job.approved_by) == (Status.APPROVED, "bob")
    seen = await approval.review(db, waiting)
    (one,) = seen.decisions
    assert (one.decision, one.decided_by, one.comment) == ("approved", "bob", "worth it")
    assert one.decided_at == job.approved_at
    assert one.seal == seen.seal
    assert [claim.job_id for claim in factory.claim("costly")] == [waiting]


async def test_reject_cancels_it_with_the_reason(db: Database, waiting: UUID) -> None:
    job = await approval.reject(db, waiting, by="bob", reason="too dear")
    assert job.status is Status.CANCELLED
    (one,) = (await approval.review(db, waiting)).decisions
    assert (one.decision, one.comment) == ("rejected", "too dear")


async def test_review_shows_all_that_counts(db: Database, waiting: UUID) -> None:
    seen = await approval.review(db, waiting)
    assert str(seen.job.cost) == "9 EUR"
    shown = seen.to_dict()
    assert shown["analysis"] == DEAR.to_dict()
    assert (shown["two_person"], shown["decisions"]) == (False, [])
    assert shown["expires_at"] is not None
    assert len(str(shown["seal"])) == 64
    with pytest.raises(NotFound):
        await approval.review(db, uuid4())


async def test_pending_ones_are_listed_with_their_cost(db: Database, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval(), has_analysis=True)
    factory.submit("plain")
    made = [factory.analyzed(Analysis(tokens=n)) for n in (1, 2)]
    factory.submit("costly")
    page = await approval.pending(db)
    assert [(job.id, str(job.cost)) for job in page.items] == [
        (made[1], "2 tokens"), (made[0], "1 tokens"),
    ]  # fmt: skip
    page = await approval.pending(db, JobFilter(max_cost=1, unit="tokens"))
    assert [job.id for job in page.items] == [made[0]]
    page = await approval.pending(db, limit=1)
    assert page.next_cursor is not None
    page = await approval.pending(db, limit=1, cursor=page.next_cursor)
    assert [job.id for job in page.items] == [made[0]]


async def test_job_changed_since_it_was_shown_is_not_approved(
    db: Database, factory: JobFactory, waiting: UUID
) -> None:
    seal = (await approval.review(db, waiting)).seal
    factory.conn.execute("update laneway.jobs set payload = '{\"n\": 1}' where id = %s", [waiting])
    with pytest.raises(Refused, match="has changed since it was shown"):
        await approval.approve(db, waiting, by="bob", seal=seal)
    seal = (await approval.review(db, waiting)).seal
    assert (await approval.approve(db, waiting, by="bob", seal=seal)).status is Status.APPROVED


async def test_submitter_is_not_the_second_person(db: Database, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    job_id = factory.submit("costly", created_by="ann")
    assert (await approval.review(db, job_id)).two_person
    with pytest.raises(Refused, match="needs another person"):
        await approval.approve(db, job_id, by="ann")
    assert (await approval.approve(db, job_id, by="bob")).status is Status.APPROVED


async def test_job_in_another_state_is_refused_by_its_name(
    db: Database, factory: JobFactory, waiting: UUID
) -> None:
    await approval.approve(db, waiting, by="bob")
    with pytest.raises(Refused, match="is approved: approve takes jobs that wait"):
        await approval.approve(db, waiting, by="bob")
    with pytest.raises(Refused, match="is approved: reject takes"):
        await approval.reject(db, waiting, by="bob", reason="late")
    await jobs.cancel(db, waiting, by="ann")
    with pytest.raises(Refused, match="is cancelled"):
        await approval.approve(db, waiting, by="bob")
    with pytest.raises(Refused, match="is pending"):
        await approval.approve(db, factory.submit("costly"), by="bob")
    with pytest.raises(NotFound, match="no job"):
        await approval.approve(db, uuid4(), by="bob")
    assert len((await approval.review(db, waiting)).decisions) == 1


async def test_decisions_are_nobodys_without_a_name_and_a_reason(
    db: Database, waiting: UUID
) -> None:
    with pytest.raises(InvalidInput, match="by:"):
        await approval.approve(db, waiting, by="")
    with pytest.raises(InvalidInput, match="comment:"):
        await approval.approve(db, waiting, by="bob", comment="\x00")
    with pytest.raises(InvalidInput, match="reason:"):
        await approval.reject(db, waiting, by="bob", reason="")
    assert (await jobs.show(db, waiting)).status is Status.AWAITING_APPROVAL


async def test_of_many_at_once_exactly_one_decides(db: Database, waiting: UUID) -> None:
    asked = [approval.approve(db, waiting, by=f"p{n}") for n in range(4)]
    asked += [approval.reject(db, waiting, by=f"r{n}", reason="no") for n in range(4)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(not isinstance(one, Exception) for one in answers) == 1
    assert all(isinstance(one, Refused) for one in answers if isinstance(one, Exception))
    assert len((await approval.review(db, waiting)).decisions) == 1


async def test_analysis_that_runs_is_asked_to_stop(db: Database, factory: JobFactory) -> None:
    factory.publish("costly", has_analysis=True)
    job_id = factory.submit("costly")
    factory.claim(analysis_of("costly"))
    with factory.listening() as heard:
        job = await jobs.cancel(db, job_id, by="ann")
    assert heard == [f"cancel {factory.worker_id}"]
    assert (job.status, job.cancel_requested_at is not None) == (Status.PENDING, True)


async def test_retry_wakes_workers_of_next_step(
    db: Database, factory: JobFactory, waiting: UUID
) -> None:
    await approval.reject(db, waiting, by="bob", reason="not now")
    assert (await jobs.retry(db, waiting, by="ann")).status is Status.AWAITING_APPROVAL
    job_id = factory.submit("costly")
    await jobs.cancel(db, job_id, by="ann")
    with factory.listening() as heard:
        await jobs.retry(db, job_id, by="ann")
    assert heard == [f"wake {analysis_of('costly')}"]


async def scheduled(db: Database, factory: JobFactory, by: str) -> UUID:
    """The job of a slot of a schedule that this person wrote."""
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *"}
    await schedules.put(db, "nightly", settings, by=by)
    return cron_slot(factory)


def cron_slot(factory: JobFactory) -> UUID:
    holder = factory.worker_id
    epoch = factory.run(leases.run_watchdog(holder, 60.0)).epoch
    factory.conn.execute("update laneway.schedule_state set next_at = '2026-01-01T03:00:00Z'")
    (due,) = factory.run(schedule_store.find_due(holder, [])).due
    entry = SlotEntry(due.next_at, "submitted")
    assert factory.run(schedule_store.fire(due, [entry], None, holder, epoch)).taken == 1
    found = factory.conn.execute("select id from laneway.jobs order by seq desc limit 1").fetchone()
    assert found is not None
    return UUID(str(found[0]))


async def refused_of(db: Database, job_id: UUID, by: str) -> None:
    with pytest.raises(Refused, match="needs another person"):
        await approval.approve(db, job_id, by=by)


async def test_writer_of_schedule_is_not_second_person_of_its_jobs(
    db: Database, factory: JobFactory
) -> None:
    job_id = await scheduled(db, factory, "ann")
    assert (await jobs.show(db, job_id)).created_by == "schedule:nightly"
    await refused_of(db, job_id, "ann")
    assert (await approval.approve(db, job_id, by="bob")).status is Status.APPROVED


async def test_later_change_of_schedule_adds_no_second_person(
    db: Database, factory: JobFactory
) -> None:
    job_id = await scheduled(db, factory, "ann")
    await schedules.disable(db, "nightly", by="bob")
    for own in ("ann", "bob"):
        await refused_of(db, job_id, own)
    await schedules.delete(db, "nightly", by="ann")
    await refused_of(db, job_id, "ann")
    assert (await approval.approve(db, job_id, by="bob")).status is Status.APPROVED


async def test_writer_of_a_schedule_stays_known_without_its_history(
    db: Database, factory: JobFactory
) -> None:
    job_id = await scheduled(db, factory, "ann")
    await schedules.delete(db, "nightly", by="ann")
    factory.conn.execute("delete from laneway.control_history")
    await refused_of(db, job_id, "ann")
    assert (await approval.approve(db, job_id, by="bob")).status is Status.APPROVED


async def test_jobs_of_schedule_with_unknown_writers_cannot_be_approved(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    await schedules.put(db, "nightly", {"job_type": "costly", "cron": "0 3 * * *"}, by="ann")
    factory.conn.execute("delete from laneway.control_history")
    await schedules.run_now(db, "nightly", by="bob", check=False)
    (job,) = (await approval.pending(db)).items
    for by in ("ann", "bob", "carl"):
        await refused_of(db, job.id, by)


async def test_writer_cannot_approve_a_manual_run_by_deleting_the_schedule(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    await schedules.put(db, "nightly", {"job_type": "costly", "cron": "0 3 * * *"}, by="ann")
    await schedules.run_now(db, "nightly", by="bob", check=False)
    await schedules.delete(db, "nightly", by="ann")
    (job,) = (await approval.pending(db)).items
    await refused_of(db, job.id, "ann")
    assert (await approval.approve(db, job.id, by="carl")).status is Status.APPROVED


@pytest.mark.parametrize("check", [False, True])
async def test_person_who_ran_schedule_is_not_second_person(
    db: Database, factory: JobFactory, check: bool
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *", "check_name": "is_full"}
    await schedules.put(db, "nightly", settings, by="ann")
    await schedules.run_now(db, "nightly", by="bob", check=check)
    if check:
        (due,) = factory.run(schedule_store.find_due(factory.worker_id, ["is_full"])).due
        assert factory.run(schedule_store.begin_check(due, factory.worker_id, 60.0))
        entry = SlotEntry(due.asked_at, "submitted")
        factory.run(schedule_store.fire(due, [entry], None, factory.worker_id, None, manual=True))
    (job,) = (await approval.pending(db)).items
    assert job.created_by == "bob"
    # Ann wrote the payload that bob's run has.
    for own in ("ann", "bob"):
        await refused_of(db, job.id, own)
    assert (await approval.approve(db, job.id, by="carl")).status is Status.APPROVED


async def test_writer_of_a_schedule_cannot_approve_after_another_enabled_it(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *", "payload": {"n": 1}, "enabled": False}
    await schedules.put(db, "nightly", settings, by="ann")
    await schedules.enable(db, "nightly", by="bob")
    job_id = cron_slot(factory)
    for own in ("ann", "bob"):
        await refused_of(db, job_id, own)
    assert (await approval.approve(db, job_id, by="carl")).status is Status.APPROVED


async def test_writer_of_a_payload_is_excluded_when_another_rolls_back_to_it(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *", "payload": {}}
    await schedules.put(db, "nightly", settings, by="owner")
    await schedules.put(db, "nightly", {**settings, "payload": {"to": "ann"}}, by="ann")
    await schedules.put(db, "nightly", settings, by="bob")
    await history.rollback(db, "schedule", "nightly", by="bob")
    job_id = cron_slot(factory)
    for own in ("ann", "bob"):
        await refused_of(db, job_id, own)
    assert (await approval.approve(db, job_id, by="carl")).status is Status.APPROVED


async def test_writer_of_replaced_payload_may_approve(db: Database, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *", "payload": {}}
    await schedules.put(db, "nightly", settings, by="owner")
    await schedules.put(db, "nightly", {**settings, "payload": {"to": "ann"}}, by="ann")
    await schedules.put(db, "nightly", {**settings, "payload": {"to": "bob"}}, by="bob")
    job_id = cron_slot(factory)
    await refused_of(db, job_id, "bob")
    assert (await approval.approve(db, job_id, by="ann")).status is Status.APPROVED


async def test_job_with_unknown_payload_writer_cannot_be_approved(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    settings = {"job_type": "costly", "cron": "0 3 * * *"}
    await schedules.put(db, "nightly", settings, by="ann")
    await schedules.put(db, "nightly", {**settings, "cron": "0 4 * * *"}, by="bob")
    factory.conn.execute("delete from laneway.control_history where by = 'ann'")
    await refused_of(db, cron_slot(factory), "carl")


async def test_blank_name_is_not_a_second_person(db: Database, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval(two_person=True))
    job_id = factory.submit("costly", created_by="ann")
    for by in ("ann ", "\u2003ann", "\tann"):
        with pytest.raises(InvalidInput, match="by: must not begin or end with a blank"):
            await approval.approve(db, job_id, by=by)
        with pytest.raises(InvalidInput, match="by: must not begin or end with a blank"):
            await approval.reject(db, job_id, by=by, reason="no")
    for by in ("ann ", "\nann"):
        with pytest.raises(InvalidInput, match="by: must not begin or end with a blank"):
            factory.run(approvals.approve(job_id, by, None, None))
        with pytest.raises(InvalidInput, match="created_by: must not begin or end with a blank"):
            factory.submit("costly", created_by=by)
