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
from tests.control.scene import Scene


async def codes(db: Database, job_id: UUID) -> list[str]:
    return [reason.code for reason in (await explain(db, job_id)).reasons]


async def message_of(db: Database, job_id: UUID, code: str) -> str:
    found = [r.message for r in (await explain(db, job_id)).reasons if r.code == code]
    assert len(found) == 1, code
    return found[0]


async def test_explain_reports_missing_handler(db: Database, scene: Scene) -> None:
    job_id = scene.submit()
    assert await codes(db, job_id) == ["no_worker", "first_in_lane", "type_unpublished"]


async def test_nothing_in_its_way_means_it_is_about_to_start(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    assert await codes(db, scene.submit()) == ["about_to_start"]


async def test_workers_without_the_handler_or_the_lane_do_not_count(
    db: Database, scene: Scene
) -> None:
    scene.publish()
    job_id = scene.submit()
    scene.register(job_types=("other",))
    assert (await codes(db, job_id))[0] == "type_not_handled"
    scene.worker_id = uuid4()
    scene.register(serves=("interactive",))
    assert (await codes(db, job_id))[0] == "lane_not_served"


async def test_job_waits_while_every_worker_that_serves_it_is_drained(
    db: Database, scene: Scene
) -> None:
    scene.publish()
    job_id = scene.submit()
    for _ in range(2):
        scene.worker_id = uuid4()
        scene.register()
        assert await codes(db, job_id) == ["about_to_start"]
        await workers.drain(db, scene.worker_id, by="ann")
    assert await codes(db, job_id) == ["workers_drained", "first_in_lane"]
    assert (await explain(db, job_id)).starts_in_s is None
    await workers.resume(db, scene.worker_id, by="ann")
    assert await codes(db, job_id) == ["about_to_start"]


def publish_room(scene: Scene, full_s: float | None) -> None:
    full = {} if full_s is None else {"async": {"default": full_s}}
    room = {"kinds": {"async": {"used": 2, "total": 2}}, "full": full}
    scene.run(worker_store.touch(scene.worker_id, None, room))


async def test_job_waits_while_every_worker_that_serves_it_is_full(
    db: Database, scene: Scene
) -> None:
    scene.publish()
    job_id = scene.submit()
    for name in ("a", "b"):
        scene.worker_id = uuid4()
        scene.register(name=name)
        publish_room(scene, None)
        assert await codes(db, job_id) == ["about_to_start"]
        publish_room(scene, 30.0)
    explained = await explain(db, job_id)
    assert [reason.code for reason in explained.reasons] == ["workers_full", "first_in_lane"]
    assert explained.starts_in_s is None
    (since,) = scene.conn.execute(
        "select seen_at - interval '30 s' from laneway.workers where name = 'b'"
    ).fetchone() or (None,)
    assert since is not None
    full_since = since.isoformat(timespec="seconds")
    assert f"b (async 2 of 2, since {full_since})" in explained.reasons[0].message
    # A drained worker does not help, and neither does one of another lane.
    scene.worker_id = uuid4()
    scene.register(serves=("interactive",))
    assert (await codes(db, job_id))[0] == "workers_full"
    scene.worker_id = uuid4()
    scene.register(name="free")
    assert await codes(db, job_id) == ["about_to_start"]


def unseen(scene: Scene, ago_s: float) -> str:
    """Move the worker's last heartbeat back; return its time as explain writes it."""
    row = scene.conn.execute(
        "update laneway.workers set seen_at = clock_timestamp() - make_interval(secs => %s)"
        " where id = %s returning seen_at",
        [ago_s, scene.worker_id],
    ).fetchone()
    assert row is not None
    seen_at: datetime = row[0]
    return seen_at.isoformat(timespec="seconds")


async def test_killed_worker_is_silent_and_then_dead(db: Database, scene: Scene) -> None:
    scene.publish()
    scene.register(name="first")
    job_id = scene.submit()
    unseen(scene, TOUCH_S)
    assert await codes(db, job_id) == ["about_to_start"]
    since = unseen(scene, 20)
    assert await codes(db, job_id) == ["worker_silent", "first_in_lane"]
    assert f"not been seen: first since {since}, 2" in await message_of(db, job_id, "worker_silent")
    assert (await explain(db, job_id)).starts_in_s is None
    since = unseen(scene, 60)
    message = await message_of(db, job_id, "no_worker")
    assert f"none serves the lane default; the last one, first, was last seen at {since}" in message
    scene.worker_id = uuid4()
    scene.register(job_types=("other",))
    message = await message_of(db, job_id, "type_not_handled")
    assert f"the last one, first, was last seen at {since}" in message
    scene.worker_id = uuid4()
    scene.register(serves=("interactive",))
    assert "the last one, first" in await message_of(db, job_id, "lane_not_served")
    scene.worker_id = uuid4()
    scene.register()
    assert await codes(db, job_id) == ["about_to_start"]


async def test_full_worker_that_was_killed_is_silent(db: Database, scene: Scene) -> None:
    scene.publish()
    job_id = scene.submit()
    for name in ("full", "killed"):
        scene.worker_id = uuid4()
        scene.register(name=name)
        publish_room(scene, 30.0)
    unseen(scene, 20)
    assert await codes(db, job_id) == ["worker_silent", "workers_full", "first_in_lane"]
    assert "full (" not in await message_of(db, job_id, "worker_silent")
    assert "killed" not in await message_of(db, job_id, "workers_full")


async def test_explain_reports_stopping_worker(db: Database, scene: Scene) -> None:
    scene.publish()
    job_id = scene.submit()
    scene.register(name="leaving")
    room = {"kinds": {"async": {"used": 1, "total": 2}}, "full": {}, "is_stopping": True}
    scene.run(worker_store.touch(scene.worker_id, None, room))
    assert await codes(db, job_id) == ["workers_stopping", "first_in_lane"]
    assert "take no more jobs: leaving" in await message_of(db, job_id, "workers_stopping")
    row = await workers.get(db, scene.worker_id)
    assert row.is_stopping
    scene.worker_id = uuid4()
    scene.register(name="full")
    publish_room(scene, 30.0)
    assert await codes(db, job_id) == ["workers_stopping", "workers_full", "first_in_lane"]


async def test_stopping_worker_brings_no_room_under_a_limit(db: Database, scene: Scene) -> None:
    scene.publish(limits=("each",))
    scene.conn.execute(
        "insert into laneway.limits (name, max_concurrent, scope) values ('each', 1, 'process')"
    )
    scene.register(name="busy")
    scene.running()
    busy, scene.worker_id = scene.worker_id, uuid4()
    scene.register(name="leaving")
    job_id = scene.submit()
    assert await codes(db, job_id) == ["about_to_start"]
    scene.run(worker_store.touch(scene.worker_id, None, {"kinds": {}, "is_stopping": True}))
    assert "limit" in await codes(db, job_id)
    assert busy != scene.worker_id


async def test_workers_at_their_slots_are_full_of_slots(db: Database, scene: Scene) -> None:
    scene.publish()
    job_id = scene.submit()
    scene.register(name="bounded")
    kinds = {"async": {"used": 0, "total": 32}, "slots": {"used": 1, "total": 1}}
    room = {"kinds": kinds, "full": {"async": {"default": 3.0}}}
    scene.run(worker_store.touch(scene.worker_id, None, room))
    assert "bounded (slots 1 of 1, since" in await message_of(db, job_id, "workers_full")
    kinds["slots"] = {"used": 32, "total": 64}
    kinds["async"] = {"used": 32, "total": 32}
    scene.run(worker_store.touch(scene.worker_id, None, room))
    assert "bounded (async 32 of 32, since" in await message_of(db, job_id, "workers_full")


async def test_explain_shows_start_of_delayed_job(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    job_id = scene.submit(delay=3600.0)
    assert await codes(db, job_id) == ["delayed"]
    assert "s, at " in await message_of(db, job_id, "delayed")


async def test_explain_shows_next_retry_of_backing_off_job(db: Database, scene: Scene) -> None:
    claim = scene.running()
    scene.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=60.0)
    assert "(retry 1 of 3)" in await message_of(db, claim.job_id, "delayed")


async def test_explain_reports_pause_and_drained_lane(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    job_id = scene.submit()
    await lanes.pause(db, by="ann")
    await lanes.drain(db, "default", by="bob")
    assert await codes(db, job_id) == ["paused", "lane_disabled", "first_in_lane"]
    assert "by ann" in await message_of(db, job_id, "paused")
    await lanes.resume_all(db, by="ann")
    await lanes.resume(db, "default", by="bob")
    assert await codes(db, job_id) == ["about_to_start"]


async def test_full_slots_name_the_jobs_that_hold_them(db: Database, scene: Scene) -> None:
    held = [scene.running("ingestion").job_id for _ in range(2)]
    job_id = scene.submit("ingestion")
    message = await message_of(db, job_id, "slots_full")
    assert message.startswith("2 of 2 slots of the lane interactive")
    assert all(str(holder) in message for holder in held)


async def test_explain_reports_lane_without_slots(db: Database, scene: Scene) -> None:
    await lanes.tune(db, "interactive", {"max_slots": 0}, by="me")
    assert "no_slots" in await codes(db, scene.submit("ingestion"))


async def test_queue_place_counts_only_earlier_jobs_of_lane(db: Database, scene: Scene) -> None:
    scene.submit("polarity")
    scene.submit("ingestion", priority=99)
    scene.submit("greet", priority=99)
    job_id = scene.submit("ingestion")
    scene.submit("ingestion")
    assert "2 jobs wait before it" in await message_of(db, job_id, "behind_others")
    await jobs.reprioritize(db, job_id, 50, by="me")
    assert "1 job waits before it" in await message_of(db, job_id, "behind_others")


async def test_place_is_counted_no_further_than_its_bound(
    db: Database, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BOUND", 3)
    for _ in range(5):
        job_id = scene.submit()
    assert "3+ jobs wait" in await message_of(db, job_id, "behind_others")


async def test_explain_shows_worker_cancel_and_lapse_of_running_job(
    db: Database, scene: Scene
) -> None:
    scene.register()
    claim = scene.running()
    assert await codes(db, claim.job_id) == ["running"]
    assert "on host:1" in await message_of(db, claim.job_id, "running")
    await jobs.cancel(db, claim.job_id, by="me")
    scene.conn.execute("update laneway.lease set lease_until = clock_timestamp() - interval '9 s'")
    assert await codes(db, claim.job_id) == ["running", "cancel_requested", "lease_lapsed"]
    message = await message_of(db, claim.job_id, "lease_lapsed")
    assert re.search(r"the lease lapsed \d+ s ago: no watchdog runs: start a worker", message)


def renewed(scene: Scene, ago_s: float) -> datetime:
    """Move the last renewal of the leases of 30 s back; return their end."""
    row = scene.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() + make_interval(secs => 30 - %s)"
        " returning lease_until",
        [ago_s],
    ).fetchone()
    assert row is not None
    until: datetime = row[0]
    return until


async def test_explain_shows_silence_of_worker_and_lease_end(db: Database, scene: Scene) -> None:
    scene.register()
    claim = scene.running()
    # A lease is renewed after a third of its time; the renewal may take a while.
    renewed(scene, 11)
    assert await codes(db, claim.job_id) == ["running"]
    assert "it runs" in await message_of(db, claim.job_id, "running")
    until = renewed(scene, 20)
    assert await codes(db, claim.job_id) == ["running", "worker_silent"]
    assert "it runs" not in await message_of(db, claim.job_id, "running")
    message = await message_of(db, claim.job_id, "worker_silent")
    since = until - timedelta(seconds=30)
    assert f"not renewed its lease since {since.isoformat(timespec='seconds')}, " in message
    assert f" s, at {until.isoformat(timespec='seconds')}: then" in message
    scene.run(leases.heartbeat([claim.seq], [claim.attempt]))
    assert await codes(db, claim.job_id) == ["running"]


async def test_workers_that_renew_late_by_their_settings_are_not_silent(
    dsn: str, scene: Scene
) -> None:
    scene.register()
    claim = scene.running()
    renewed(scene, 20)
    db = Database(dsn, Settings.load(database_url=dsn, heartbeat_fraction=0.8))
    assert await codes(db, claim.job_id) == ["running"]
    await db.close()


async def test_only_leader_reclaims_lease(db: Database, scene: Scene) -> None:
    scene.register()
    claim = scene.running()
    renewed(scene, 20)
    assert "no watchdog runs: start a worker" in await message_of(db, claim.job_id, "worker_silent")
    scene.run(leases.run_watchdog(uuid4(), 60.0))
    assert "the watchdog takes the job back" in await message_of(db, claim.job_id, "worker_silent")
    scene.conn.execute("update laneway.leader set held_until = clock_timestamp()")
    assert "no watchdog runs: start a worker" in await message_of(db, claim.job_id, "worker_silent")
    Scene(scene.conn).register(name="host:2")
    assert "the watchdog takes the job back" in await message_of(db, claim.job_id, "worker_silent")


async def test_explain_reports_silent_worker_of_analysis(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish("costly", approval=Approval(), has_analysis=True)
    job_id = scene.submit("costly")
    scene.claim(analysis_of("costly"))
    assert await codes(db, job_id) == ["pending"]
    assert "its analysis runs on host:1" in await message_of(db, job_id, "pending")
    renewed(scene, 20)
    assert await codes(db, job_id) == ["pending", "worker_silent"]
    assert "runs" not in await message_of(db, job_id, "pending")


async def test_explain_shows_how_job_ended(db: Database, scene: Scene) -> None:
    assert await codes(db, scene.completed()) == ["completed"]
    job_id = scene.failed("other")
    assert "ValueError: no; `laneway jobs retry` runs it again" in await message_of(
        db, job_id, "failed"
    )


async def test_unknown_job_cannot_be_explained(db: Database) -> None:
    with pytest.raises(NotFound):
        await explain(db, uuid4())


# -- before it may run, and when it will -----------------------------------------------------------


async def test_explain_lists_other_obstacles_of_awaiting_job(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish("greet", approval=Approval())
    job_id = scene.submit(delay=3600.0)
    await lanes.drain(db, "default", by="bob")
    assert await codes(db, job_id) == ["awaiting_approval", "delayed", "lane_disabled"]
    assert (await explain(db, job_id)).starts_in_s is None


async def test_two_person_rule_names_whose_approval_does_not_count(
    db: Database, scene: Scene
) -> None:
    scene.register()
    scene.publish("greet", approval=Approval(two_person=True))
    by_ann = scene.submit(created_by="ann")
    by_schedule = scene.submit(created_by="schedule:nightly")
    assert "not ann" in await message_of(db, by_ann, "awaiting_approval")
    assert "not the author of the schedule nightly" in await message_of(
        db, by_schedule, "awaiting_approval"
    )


async def test_explain_reports_approved_job_that_needs_new_approval(
    db: Database, scene: Scene
) -> None:
    scene.register()
    scene.publish()
    asked, held = scene.submit(), scene.submit(delay=3600.0)
    scene.publish("greet", approval=Approval())
    assert await codes(db, asked) == ["approval_missing", "first_in_lane"]
    assert "returns it to awaiting_approval" in await message_of(db, asked, "approval_missing")
    assert await codes(db, held) == ["approval_missing", "delayed"]
    assert (await explain(db, asked)).starts_in_s is None
    scene.publish("greet", approval=Approval(), has_analysis=True)
    assert "returns it to pending" in await message_of(db, asked, "approval_missing")
    assert scene.claim() == []
    assert (await explain(db, asked)).status == "pending"
    assert "approval_missing" not in await codes(db, asked)


def ended(scene: Scene, count: int) -> None:
    """Let this many jobs of the lane end within the last minute."""
    for _ in range(count):
        scene.completed("pace")
    scene.conn.execute(
        "update laneway.outcome set finished_at = clock_timestamp() - interval '60 s',"
        " started_at = clock_timestamp() - interval '70 s'"
    )


async def starts_in(db: Database, job_id: UUID) -> float | None:
    return (await explain(db, job_id)).starts_in_s


async def test_estimate_counts_those_before_it_at_the_pace_of_late(
    db: Database, scene: Scene
) -> None:
    scene.register()
    scene.publish()
    ended(scene, 6)
    ids = [scene.submit() for _ in range(4)]
    assert await starts_in(db, ids[0]) == 0
    # Four at six a minute.
    assert await starts_in(db, ids[3]) == pytest.approx(40, abs=4)


async def test_jobs_that_a_limit_holds_up_do_not_count(db: Database, scene: Scene) -> None:
    scene.register(("greet", "held"))
    scene.publish()
    scene.publish("held", limits=("openai",))
    ended(scene, 6)
    scene.conn.execute("update laneway.limits set max_concurrent = 0 where name = 'openai'")
    held = [scene.submit("held") for _ in range(50)]
    first, second = scene.submit(), scene.submit()
    assert "50 jobs wait before it" in await message_of(db, first, "behind_others")
    assert "50 of them held up by limits" in await message_of(db, first, "behind_others")
    assert await starts_in(db, second) == pytest.approx(20, abs=3)
    assert "max_concurrent 0" in await message_of(db, held[0], "limit_zero")
    assert await starts_in(db, held[0]) is None


async def test_explain_names_the_lane_that_has_the_next_turn_at_a_limit(
    db: Database, scene: Scene
) -> None:
    scene.register(("greet", "other"))
    for job_type in ("greet", "other"):
        scene.publish(job_type, limits=("ollama",))
    scene.conn.execute(
        "insert into laneway.worker_lanes (name, job_types, max_slots)"
        " values ('others', '{other}', null)"
    )
    scene.running("greet")
    waits, _ = scene.submit(), scene.submit("other", priority=7)
    # The lane that filled the limit may want more, and no other lane waits.
    assert "next turn: lane default, priority 0" in await message_of(db, waits, "limit")
    assert scene.claim("other") == scene.claim("greet") == []
    assert "next turn: lane others, priority 7" in await message_of(db, waits, "limit")


async def test_estimate_is_absent_when_blocked_or_without_history(
    db: Database, scene: Scene
) -> None:
    scene.register()
    scene.publish()
    ids = [scene.submit() for _ in range(2)]
    assert await starts_in(db, ids[1]) is None
    ended(scene, 3)
    await lanes.pause(db, by="ann")
    assert await starts_in(db, ids[1]) is None


async def test_due_job_that_was_delayed_has_a_reason(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    job_id = scene.submit(delay=3600.0)
    scene.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    assert await codes(db, job_id) == ["about_to_start"]


async def test_delayed_job_starts_when_its_time_comes(db: Database, scene: Scene) -> None:
    scene.register()
    scene.publish()
    assert await starts_in(db, scene.submit(delay=600.0)) == pytest.approx(600, abs=30)


async def test_awaiting_job_shows_duration_of_similar_jobs(db: Database, scene: Scene) -> None:
    ended(scene, 3)
    scene.conn.execute(
        "update laneway.outcome set finished_at = finished_at - interval '3 h',"
        " started_at = started_at - interval '3 h'"
    )
    scene.publish("pace", approval=Approval())
    asked = await explain(db, scene.submit("pace"))
    assert asked.starts_in_s is None
    assert asked.runs_for_s == pytest.approx(10, abs=1)
    assert (await explain(db, scene.submit("other"))).runs_for_s is None


async def test_one_that_waits_for_a_key_names_the_holder_and_guesses_from_its_type(
    db: Database, scene: Scene
) -> None:
    scene.register(("greet", "pace"))
    scene.publish()
    ended(scene, 2)
    scene.conn.execute("update laneway.outcome set job_type = 'greet'")
    holder = scene.running(concurrency_key="doc").job_id
    waits = [scene.submit(concurrency_key="doc") for _ in range(2)]
    scene.claim(room=5)
    assert str(holder) in await message_of(db, waits[1], "key")
    assert "1 wait for it before" in await message_of(db, waits[1], "key")
    # Ten seconds each.
    assert await starts_in(db, waits[1]) == pytest.approx(20, abs=1)


async def test_jobs_that_no_worker_handles_do_not_come_first(db: Database, scene: Scene) -> None:
    scene.publish()
    scene.register()
    for _ in range(2):
        scene.submit("orphan", created_by="ann")
    job_id = scene.submit()
    found = await explain(db, job_id, reader="ann")
    assert [reason.code for reason in found.reasons] == ["about_to_start"]
    assert found.starts_in_s == 0.0
    ahead = scene.submit(priority=1, created_by="ann")
    found = await explain(db, job_id, reader="ann")
    (reason,) = found.reasons
    assert reason.message == (
        "1 job waits before it in the lane default"
        ", besides 2 that no live worker handles"
        f"; of your own, these come first: {ahead}"
    )
    scene.worker_id = uuid4()
    scene.register(job_types=("orphan",))
    assert "3 jobs wait before it" in await message_of(db, job_id, "behind_others")


async def test_jobs_before_one_that_no_worker_handles_are_counted(
    db: Database, scene: Scene
) -> None:
    scene.register()
    for _ in range(2):
        scene.submit("orphan")
    job_id = scene.submit("orphan")
    assert "2 jobs wait before it" in await message_of(db, job_id, "behind_others")


async def test_worker_that_stopped_is_named_where_none_handles_the_type(
    db: Database, scene: Scene
) -> None:
    scene.publish()
    scene.register(name="first")
    scene.run(worker_store.stop(scene.worker_id))
    row = scene.conn.execute("select stopped_at from laneway.workers").fetchone()
    assert row is not None
    scene.worker_id = uuid4()
    scene.register(job_types=("other",))
    message = await message_of(db, scene.submit(), "type_not_handled")
    assert message.endswith(
        f"; the last one, first, stopped at {row[0].isoformat(timespec='seconds')}"
    )
