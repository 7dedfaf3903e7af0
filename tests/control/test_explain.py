"""Explain names every reason that holds, and none that does not."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from laneway.config.settings import Settings
from laneway.control import explain as room
from laneway.control import jobs, lanes, workers
from laneway.control.explain import explain
from laneway.domain.approval import Approval, analysis_of
from laneway.domain.overview import TOUCH_S
from laneway.errors import NotFound
from laneway.store import leases
from laneway.store import workers as worker_store
from laneway.store.database import Database
from tests.support.job_factory import JobFactory


async def codes(db: Database, job_id: UUID) -> list[str]:
    return [reason.code for reason in (await explain(db, job_id)).reasons]


async def message_of(db: Database, job_id: UUID, code: str) -> str:
    found = [r.message for r in (await explain(db, job_id)).reasons if r.code == code]
    assert len(found) == 1, code
    return found[0]


async def test_explain_reports_missing_handler(db: Database, factory: JobFactory) -> None:
    job_id = factory.submit()
    assert await codes(db, job_id) == ["no_worker", "first_in_lane", "type_unpublished"]


async def test_explain_suggests_the_nearest_published_type(
    db: Database, factory: JobFactory
) -> None:
    factory.publish("ingest")
    job_id = factory.submit("ingst")
    assert await message_of(db, job_id, "type_unpublished") == (
        "no worker has ever published the job type ingst; did you mean ingest?"
    )


async def test_nothing_in_its_way_means_it_is_about_to_start(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish()
    assert await codes(db, factory.submit()) == ["about_to_start"]


async def test_workers_without_the_handler_or_the_lane_do_not_count(
    db: Database, factory: JobFactory
) -> None:
    factory.publish()
    job_id = factory.submit()
    factory.register(job_types=("other",))
    assert (await codes(db, job_id))[0] == "type_not_handled"
    factory.worker_id = uuid4()
    factory.register(serves=("interactive",))
    assert (await codes(db, job_id))[0] == "lane_not_served"


async def test_job_waits_while_every_worker_that_serves_it_is_drained(
    db: Database, factory: JobFactory
) -> None:
    factory.publish()
    job_id = factory.submit()
    for _ in range(2):
        factory.worker_id = uuid4()
        factory.register()
        assert await codes(db, job_id) == ["about_to_start"]
        await workers.drain(db, factory.worker_id, by="ann")
    assert await codes(db, job_id) == ["workers_drained", "first_in_lane"]
    assert (await explain(db, job_id)).starts_in_s is None
    await workers.resume(db, factory.worker_id, by="ann")
    assert await codes(db, job_id) == ["about_to_start"]


def publish_room(factory: JobFactory, full_s: float | None) -> None:
    full = {} if full_s is None else {"async": {"default": full_s}}
    room = {"kinds": {"async": {"used": 2, "total": 2}}, "full": full}
    factory.run(worker_store.touch(factory.worker_id, None, room))


async def test_job_waits_while_every_worker_that_serves_it_is_full(
    db: Database, factory: JobFactory
) -> None:
    factory.publish()
    job_id = factory.submit()
    for name in ("a", "b"):
        factory.worker_id = uuid4()
        factory.register(name=name)
        publish_room(factory, None)
        assert await codes(db, job_id) == ["about_to_start"]
        publish_room(factory, 30.0)
    explained = await explain(db, job_id)
    assert [reason.code for reason in explained.reasons] == ["workers_full", "first_in_lane"]
    assert explained.starts_in_s is None
    (since,) = factory.conn.execute(
        "select seen_at - interval '30 s' from laneway.workers where name = 'b'"
    ).fetchone() or (None,)
    assert since is not None
    full_since = since.isoformat(timespec="seconds")
    assert f"b (async 2 of 2, since {full_since})" in explained.reasons[0].message
    # A drained worker does not help, and neither does one of another lane.
    factory.worker_id = uuid4()
    factory.register(serves=("interactive",))
    assert (await codes(db, job_id))[0] == "workers_full"
    factory.worker_id = uuid4()
    factory.register(name="free")
    assert await codes(db, job_id) == ["about_to_start"]


def unseen(factory: JobFactory, ago_s: float) -> str:
    """Move the worker's last heartbeat back; return its time as explain writes it."""
    row = factory.conn.execute(
        "update laneway.workers set seen_at = clock_timestamp() - make_interval(secs => %s)"
        " where id = %s returning seen_at",
        [ago_s, factory.worker_id],
    ).fetchone()
    assert row is not None
    seen_at: datetime = row[0]
    return seen_at.isoformat(timespec="seconds")


async def test_killed_worker_is_silent_and_then_dead(db: Database, factory: JobFactory) -> None:
    factory.publish()
    factory.register(name="first")
    job_id = factory.submit()
    unseen(factory, TOUCH_S)
    assert await codes(db, job_id) == ["about_to_start"]
    since = unseen(factory, 20)
    assert await codes(db, job_id) == ["worker_silent", "first_in_lane"]
    assert f"not been seen: first since {since}, 2" in await message_of(db, job_id, "worker_silent")
    assert (await explain(db, job_id)).starts_in_s is None
    since = unseen(factory, 60)
    message = await message_of(db, job_id, "no_worker")
    assert f"none serves the lane default; the last one, first, was last seen at {since}" in message
    factory.worker_id = uuid4()
    factory.register(job_types=("other",))
    message = await message_of(db, job_id, "type_not_handled")
    assert f"the last one, first, was last seen at {since}" in message
    factory.worker_id = uuid4()
    factory.register(serves=("interactive",))
    assert "the last one, first" in await message_of(db, job_id, "lane_not_served")
    factory.worker_id = uuid4()
    factory.register()
    assert await codes(db, job_id) == ["about_to_start"]


async def test_full_worker_that_was_killed_is_silent(db: Database, factory: JobFactory) -> None:
    factory.publish()
    job_id = factory.submit()
    for name in ("full", "killed"):
        factory.worker_id = uuid4()
        factory.register(name=name)
        publish_room(factory, 30.0)
    unseen(factory, 20)
    assert await codes(db, job_id) == ["worker_silent", "workers_full", "first_in_lane"]
    assert "full (" not in await message_of(db, job_id, "worker_silent")
    assert "killed" not in await message_of(db, job_id, "workers_full")


async def test_explain_reports_stopping_worker(db: Database, factory: JobFactory) -> None:
    factory.publish()
    job_id = factory.submit()
    factory.register(name="leaving")
    room = {"kinds": {"async": {"used": 1, "total": 2}}, "full": {}, "is_stopping": True}
    factory.run(worker_store.touch(factory.worker_id, None, room))
    assert await codes(db, job_id) == ["workers_stopping", "first_in_lane"]
    assert "take no more jobs: leaving" in await message_of(db, job_id, "workers_stopping")
    row = await workers.get(db, factory.worker_id)
    assert row.is_stopping
    factory.worker_id = uuid4()
    factory.register(name="full")
    publish_room(factory, 30.0)
    assert await codes(db, job_id) == ["workers_stopping", "workers_full", "first_in_lane"]


async def test_stopping_worker_brings_no_room_under_a_limit(
    db: Database, factory: JobFactory
) -> None:
    factory.publish(limits=("each",))
    factory.conn.execute(
        "insert into laneway.limits (name, max_concurrent, scope) values ('each', 1, 'process')"
    )
    factory.register(name="busy")
    factory.running()
    busy, factory.worker_id = factory.worker_id, uuid4()
    factory.register(name="leaving")
    job_id = factory.submit()
    assert await codes(db, job_id) == ["about_to_start"]
    factory.run(worker_store.touch(factory.worker_id, None, {"kinds": {}, "is_stopping": True}))
    assert "limit" in await codes(db, job_id)
    assert busy != factory.worker_id


async def test_workers_at_their_slots_are_full_of_slots(db: Database, factory: JobFactory) -> None:
    factory.publish()
    job_id = factory.submit()
    factory.register(name="bounded")
    kinds = {"async": {"used": 0, "total": 32}, "slots": {"used": 1, "total": 1}}
    room = {"kinds": kinds, "full": {"async": {"default": 3.0}}}
    factory.run(worker_store.touch(factory.worker_id, None, room))
    assert "bounded (slots 1 of 1, since" in await message_of(db, job_id, "workers_full")
    kinds["slots"] = {"used": 32, "total": 64}
    kinds["async"] = {"used": 32, "total": 32}
    factory.run(worker_store.touch(factory.worker_id, None, room))
    assert "bounded (async 32 of 32, since" in await message_of(db, job_id, "workers_full")


async def test_explain_shows_start_of_delayed_job(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.publish()
    job_id = factory.submit(delay=3600.0)
    assert await codes(db, job_id) == ["delayed"]
    assert "s, at " in await message_of(db, job_id, "delayed")


async def test_explain_shows_next_retry_of_backing_off_job(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    factory.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=60.0)
    assert "(retry 1 of 3)" in await message_of(db, claim.job_id, "delayed")


async def test_explain_reports_pause_and_drained_lane(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.publish()
    job_id = factory.submit()
    await lanes.pause(db, by="ann")
    await lanes.drain(db, "default", by="bob")
    assert await codes(db, job_id) == ["paused", "lane_disabled", "first_in_lane"]
    assert "by ann" in await message_of(db, job_id, "paused")
    await lanes.resume_all(db, by="ann")
    await lanes.resume(db, "default", by="bob")
    assert await codes(db, job_id) == ["about_to_start"]


async def test_full_slots_name_the_jobs_that_hold_them(db: Database, factory: JobFactory) -> None:
    held = [factory.running("ingestion").job_id for _ in range(2)]
    job_id = factory.submit("ingestion")
    message = await message_of(db, job_id, "slots_full")
    assert message.startswith("2 of 2 slots of the lane interactive")
    assert all(str(holder) in message for holder in held)
    assert message.endswith("; `laneway lanes set interactive --max-slots N` adds slots")


async def test_explain_reports_lane_without_slots(db: Database, factory: JobFactory) -> None:
    await lanes.tune(db, "interactive", {"max_slots": 0}, by="me")
    assert "no_slots" in await codes(db, factory.submit("ingestion"))


async def test_queue_place_counts_only_earlier_jobs_of_lane(
    db: Database, factory: JobFactory
) -> None:
    factory.submit("polarity")
    factory.submit("ingestion", priority=99)
    factory.submit("greet", priority=99)
    job_id = factory.submit("ingestion")
    factory.submit("ingestion")
    assert "2 jobs wait before it" in await message_of(db, job_id, "behind_others")
    await jobs.reprioritize(db, job_id, 50, by="me")
    assert "1 job waits before it" in await message_of(db, job_id, "behind_others")


async def test_place_is_counted_no_further_than_its_bound(
    db: Database, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BOUND", 3)
    for _ in range(5):
        job_id = factory.submit()
    assert "3+ jobs wait" in await message_of(db, job_id, "behind_others")


async def test_explain_shows_worker_cancel_and_lapse_of_running_job(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    claim = factory.running()
    assert await codes(db, claim.job_id) == ["running"]
    assert "on host:1" in await message_of(db, claim.job_id, "running")
    await jobs.cancel(db, claim.job_id, by="me")
    factory.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() - interval '9 s'"
    )
    assert await codes(db, claim.job_id) == ["running", "cancel_requested", "lease_lapsed"]
    message = await message_of(db, claim.job_id, "lease_lapsed")
    assert re.search(r"the lease lapsed \d+ s ago; no other worker or server reported", message)


def renewed(factory: JobFactory, ago_s: float) -> datetime:
    """Move the last renewal of the leases of 30 s back; return their end."""
    row = factory.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() + make_interval(secs => 30 - %s)"
        " returning lease_until",
        [ago_s],
    ).fetchone()
    assert row is not None
    until: datetime = row[0]
    return until


async def test_explain_shows_silence_of_worker_and_lease_end(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    claim = factory.running()
    # A lease is renewed after a third of its time; the renewal may take a while.
    renewed(factory, 11)
    assert await codes(db, claim.job_id) == ["running"]
    assert "it runs" in await message_of(db, claim.job_id, "running")
    until = renewed(factory, 20)
    assert await codes(db, claim.job_id) == ["running", "worker_silent"]
    assert "it runs" not in await message_of(db, claim.job_id, "running")
    message = await message_of(db, claim.job_id, "worker_silent")
    since = until - timedelta(seconds=30)
    assert f"not renewed its lease since {since.isoformat(timespec='seconds')}, " in message
    assert re.search(
        rf"lapses in \d+ s, at {re.escape(until.isoformat(timespec='seconds'))}", message
    )
    factory.run(leases.heartbeat([claim.seq], [claim.attempt]))
    assert await codes(db, claim.job_id) == ["running"]


async def test_workers_that_renew_late_by_their_settings_are_not_silent(
    dsn: str, factory: JobFactory
) -> None:
    factory.register()
    claim = factory.running()
    renewed(factory, 20)
    db = Database(dsn, Settings.load(database_url=dsn, heartbeat_fraction=0.8))
    assert await codes(db, claim.job_id) == ["running"]
    await db.close()


MUST_RUN = "one must run to take the job back: `laneway worker APP`"
TAKES_BACK = "then another worker or server takes the job back"


async def test_killed_worker_does_not_take_its_own_job_back(
    db: Database, factory: JobFactory
) -> None:
    """It was the leader, and counts as alive for a while: it must not be promised."""
    factory.register()
    claim = factory.running()
    factory.run(leases.run_watchdog(factory.worker_id, 60.0))
    renewed(factory, 20)
    assert MUST_RUN in await message_of(db, claim.job_id, "worker_silent")


async def test_other_process_that_reported_lately_takes_job_back(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    claim = factory.running()
    renewed(factory, 20)
    assert MUST_RUN in await message_of(db, claim.job_id, "worker_silent")
    factory.run(leases.run_watchdog(uuid4(), 60.0))
    assert TAKES_BACK in await message_of(db, claim.job_id, "worker_silent")
    factory.conn.execute("update laneway.leader set held_until = clock_timestamp()")
    assert MUST_RUN in await message_of(db, claim.job_id, "worker_silent")
    other = JobFactory(factory.conn).register(name="host:2")
    assert TAKES_BACK in await message_of(db, claim.job_id, "worker_silent")
    factory.conn.execute(
        "update laneway.workers set seen_at = clock_timestamp() - interval '20 s' where id = %s",
        [other],
    )
    assert MUST_RUN in await message_of(db, claim.job_id, "worker_silent")


async def test_explain_reports_silent_worker_of_analysis(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.publish("costly", approval=Approval(), has_analysis=True)
    job_id = factory.submit("costly")
    factory.claim(analysis_of("costly"))
    assert await codes(db, job_id) == ["pending"]
    assert "its analysis runs on host:1" in await message_of(db, job_id, "pending")
    renewed(factory, 20)
    assert await codes(db, job_id) == ["pending", "worker_silent"]
    assert "runs" not in await message_of(db, job_id, "pending")


async def test_explain_shows_how_job_ended(db: Database, factory: JobFactory) -> None:
    assert await codes(db, factory.completed()) == ["completed"]
    job_id = factory.failed("other")
    assert "ValueError: no; `laneway jobs retry` runs it again" in await message_of(
        db, job_id, "failed"
    )


async def test_retry_is_not_advised_after_a_wait_that_timed_out(
    db: Database, factory: JobFactory
) -> None:
    claim = factory.running()
    error = '{"type": "WaitTimeout", "message": "reviewed did not come within 8 s"}'
    factory.settle(claim, "giveup", error=error)
    message = await message_of(db, claim.job_id, "failed")
    assert "laneway jobs retry" not in message
    assert "; a retry meets the same timeout" in message
    assert "submit the job again" in message
    assert "catch TimeoutError" in message


async def test_unknown_job_cannot_be_explained(db: Database) -> None:
    with pytest.raises(NotFound):
        await explain(db, uuid4())


# -- before it may run, and when it will -----------------------------------------------------------


async def test_explain_lists_other_obstacles_of_awaiting_job(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish("greet", approval=Approval())
    job_id = factory.submit(delay=3600.0)
    await lanes.drain(db, "default", by="bob")
    assert await codes(db, job_id) == ["awaiting_approval", "delayed", "lane_disabled"]
    assert (await explain(db, job_id)).starts_in_s is None


async def test_two_person_rule_names_whose_approval_does_not_count(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish("greet", approval=Approval(two_person=True))
    by_ann = factory.submit(created_by="ann")
    by_schedule = factory.submit(created_by="schedule:nightly")
    message = await message_of(db, by_ann, "awaiting_approval")
    assert "by another person (not ann); the request expires at " in message
    assert "not the author of the schedule nightly" in await message_of(
        db, by_schedule, "awaiting_approval"
    )


async def test_explain_reports_approved_job_that_needs_new_approval(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish()
    asked, held = factory.submit(), factory.submit(delay=3600.0)
    factory.publish("greet", approval=Approval())
    assert await codes(db, asked) == ["approval_missing", "first_in_lane"]
    assert "returns it to awaiting_approval" in await message_of(db, asked, "approval_missing")
    assert await codes(db, held) == ["approval_missing", "delayed"]
    assert (await explain(db, asked)).starts_in_s is None
    factory.publish("greet", approval=Approval(), has_analysis=True)
    assert "returns it to pending" in await message_of(db, asked, "approval_missing")
    assert factory.claim() == []
    assert (await explain(db, asked)).status == "pending"
    assert "approval_missing" not in await codes(db, asked)


def ended(factory: JobFactory, count: int) -> None:
    """Let this many jobs of the lane end within the last minute."""
    for _ in range(count):
        factory.completed("pace")
    factory.conn.execute(
        "update laneway.outcome set finished_at = clock_timestamp() - interval '60 s',"
        " started_at = clock_timestamp() - interval '70 s'"
    )


async def starts_in(db: Database, job_id: UUID) -> float | None:
    return (await explain(db, job_id)).starts_in_s


async def test_estimate_counts_those_before_it_at_their_usual_run_time(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish()
    ended(factory, 6)
    ids = [factory.submit() for _ in range(4)]
    assert await starts_in(db, ids[0]) == 0
    # Three of ten seconds, one by one: the worker has not reported its room.
    assert await starts_in(db, ids[3]) == pytest.approx(30, abs=3)


def ended_after(factory: JobFactory, job_type: str, run_s: float, ago_s: float) -> None:
    """Let a job end that ran for so many seconds, so long ago."""
    job_id = factory.completed(job_type)
    factory.conn.execute(
        "update laneway.outcome o set finished_at = clock_timestamp() - make_interval(secs => %s),"
        " started_at = clock_timestamp() - make_interval(secs => %s) from laneway.jobs j"
        " where j.seq = o.seq and j.id = %s",
        [ago_s, ago_s + run_s, job_id],
    )


async def test_estimate_goes_by_the_run_times_of_the_types_that_wait(
    db: Database, factory: JobFactory
) -> None:
    docs = {"name": "docs", "job_types": ["short", "long"], "max_slots": 2}
    await lanes.create(db, docs, by="ann")
    factory.register(("short", "long"))
    for job_type in ("short", "long"):
        factory.publish(job_type)
    # Two ends in ten minutes, without work in between: the pace would say hours.
    ended_after(factory, "long", 100, 600)
    ended_after(factory, "short", 2, 30)
    for _ in range(2):
        factory.running("short")
    short = [factory.submit("short") for _ in range(11)]
    # Ten wait before the last, two at a time for two seconds each.
    assert await starts_in(db, short[10]) == pytest.approx(12, abs=2)
    long = [factory.submit("long") for _ in range(2)]
    assert await starts_in(db, long[1]) == pytest.approx(14 + 100 / 2, abs=10)


async def test_jobs_that_a_limit_holds_up_do_not_count(db: Database, factory: JobFactory) -> None:
    factory.register(("greet", "held"))
    factory.publish()
    factory.publish("held", limits=("openai",))
    ended(factory, 6)
    factory.conn.execute("update laneway.limits set max_concurrent = 0 where name = 'openai'")
    held = [factory.submit("held") for _ in range(50)]
    first, second = factory.submit(), factory.submit()
    assert "50 jobs wait before it" in await message_of(db, first, "behind_others")
    assert "50 of them held up by limits" in await message_of(db, first, "behind_others")
    assert await starts_in(db, second) == pytest.approx(10, abs=3)
    assert "max_concurrent 0" in await message_of(db, held[0], "limit_zero")
    assert await starts_in(db, held[0]) is None


async def test_explain_names_the_lane_that_has_the_next_turn_at_a_limit(
    db: Database, factory: JobFactory
) -> None:
    factory.register(("greet", "other"))
    for job_type in ("greet", "other"):
        factory.publish(job_type, limits=("ollama",))
    factory.conn.execute(
        "insert into laneway.worker_lanes (name, job_types, max_slots)"
        " values ('others', '{other}', null)"
    )
    factory.running("greet")
    waits, _ = factory.submit(), factory.submit("other", priority=7)
    # The lane that filled the limit may want more, and no other lane waits.
    assert "next turn: lane default, priority 0" in await message_of(db, waits, "limit")
    assert factory.claim("other") == factory.claim("greet") == []
    assert "next turn: lane others, priority 7" in await message_of(db, waits, "limit")


async def test_estimate_is_absent_when_blocked_or_without_history(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    factory.publish()
    ids = [factory.submit() for _ in range(2)]
    assert await starts_in(db, ids[1]) is None
    ended(factory, 3)
    await lanes.pause(db, by="ann")
    assert await starts_in(db, ids[1]) is None


async def test_due_job_that_was_delayed_has_a_reason(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.publish()
    job_id = factory.submit(delay=3600.0)
    factory.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    assert await codes(db, job_id) == ["about_to_start"]


async def test_delayed_job_starts_when_its_time_comes(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.publish()
    assert await starts_in(db, factory.submit(delay=600.0)) == pytest.approx(600, abs=30)


async def test_awaiting_job_shows_duration_of_similar_jobs(
    db: Database, factory: JobFactory
) -> None:
    ended(factory, 3)
    factory.conn.execute(
        "update laneway.outcome set finished_at = finished_at - interval '3 h',"
        " started_at = started_at - interval '3 h'"
    )
    factory.publish("pace", approval=Approval())
    asked = await explain(db, factory.submit("pace"))
    assert asked.starts_in_s is None
    assert asked.runs_for_s == pytest.approx(10, abs=1)
    assert (await explain(db, factory.submit("other"))).runs_for_s is None


async def test_job_that_lacks_an_approval_holds_up_no_other_of_its_key(
    db: Database, factory: JobFactory
) -> None:
    factory.register(("t", "later"))
    factory.submit("later", concurrency_key="doc", priority=1)
    waits = factory.submit(concurrency_key="doc")
    assert "key" in await codes(db, waits)
    factory.publish("later")
    factory.conn.execute("update laneway.job_types set approval = 'always' where name = 'later'")
    assert "key" not in await codes(db, waits)


async def test_one_that_waits_for_a_key_names_the_holder_and_guesses_from_its_type(
    db: Database, factory: JobFactory
) -> None:
    factory.register(("greet", "pace"))
    factory.publish()
    ended(factory, 2)
    factory.conn.execute("update laneway.outcome set job_type = 'greet'")
    holder = factory.running(concurrency_key="doc").job_id
    waits = [factory.submit(concurrency_key="doc") for _ in range(2)]
    factory.claim(room=5)
    assert str(holder) in await message_of(db, waits[1], "key")
    assert "1 wait for it before" in await message_of(db, waits[1], "key")
    # Ten seconds each.
    assert await starts_in(db, waits[1]) == pytest.approx(20, abs=1)


async def test_jobs_that_no_worker_handles_do_not_come_first(
    db: Database, factory: JobFactory
) -> None:
    factory.publish()
    factory.register()
    for _ in range(2):
        factory.submit("orphan", created_by="ann")
    job_id = factory.submit()
    found = await explain(db, job_id, reader="ann")
    assert [reason.code for reason in found.reasons] == ["about_to_start"]
    assert found.starts_in_s == 0.0
    ahead = factory.submit(priority=1, created_by="ann")
    found = await explain(db, job_id, reader="ann")
    (reason,) = found.reasons
    assert reason.message == (
        "1 job waits before it in the lane default"
        ", besides 2 that no live worker handles"
        f"; of your own, these come first: {ahead}"
    )
    factory.worker_id = uuid4()
    factory.register(job_types=("orphan",))
    assert "3 jobs wait before it" in await message_of(db, job_id, "behind_others")


async def test_jobs_before_one_that_no_worker_handles_are_counted(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    for _ in range(2):
        factory.submit("orphan")
    job_id = factory.submit("orphan")
    assert "2 jobs wait before it" in await message_of(db, job_id, "behind_others")


async def test_worker_that_stopped_is_named_where_none_handles_the_type(
    db: Database, factory: JobFactory
) -> None:
    factory.publish()
    factory.register(name="first")
    factory.run(worker_store.stop(factory.worker_id))
    row = factory.conn.execute("select stopped_at from laneway.workers").fetchone()
    assert row is not None
    factory.worker_id = uuid4()
    factory.register(job_types=("other",))
    message = await message_of(db, factory.submit(), "type_not_handled")
    stopped = row[0].isoformat(timespec="seconds")
    assert message.endswith(
        f"; the last one, first, stopped at {stopped}: start one that has it with"
        " `laneway worker APP`"
    )
