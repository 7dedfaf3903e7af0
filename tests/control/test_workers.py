"""The overview shows the state of the database as JSON values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from laneway.control import audit, lanes, workers
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store import leases
from laneway.store import workers as store
from laneway.store.database import Database
from laneway.store.leases import Report
from tests.support.job_factory import JobFactory


async def test_overview_has_lanes_active_jobs_workers_and_leader(
    db: Database, factory: JobFactory
) -> None:
    factory.register()
    claim = factory.running("ingestion")
    factory.run(leases.report([Report(claim, "load", 1.0, 4.0, "a page")], []))
    factory.run(leases.run_watchdog(factory.worker_id, 30.0))
    await lanes.pause(db, by="ann")
    seen = await workers.overview(db)
    assert seen.leader is not None
    assert seen.leader.id == factory.worker_id
    shown: dict[str, Any] = json.loads(json.dumps(seen.to_dict()))
    assert (shown["paused"], shown["paused_by"]) == (True, "ann")
    assert shown["leader"] == str(factory.worker_id)
    (active,) = shown["active"]
    assert UUID(active["id"]) == claim.job_id
    assert (active["lane"], active["worker"]) == ("interactive", "host:1")
    assert active["progress"]["percent"] == 25.0
    (worker,) = shown["workers"]
    assert (worker["running"], worker["is_leader"], worker["lanes"]) == (1, True, None)
    used = {lane["name"]: lane["slots_used"] for lane in shown["lanes"]}
    assert used == {"analysis": 0, "default": 0, "interactive": 1, "maintenance": 0, "system": 0}


async def test_workers_long_silent_are_not_live(db: Database, factory: JobFactory) -> None:
    factory.register()
    factory.conn.execute("update laneway.workers set seen_at = seen_at - interval '50 s'")
    seen = await workers.overview(db)
    assert (len(seen.workers), seen.live, seen.leader) == (1, [], None)


async def test_first_drain_of_worker_lasts_until_resume(db: Database, factory: JobFactory) -> None:
    factory.register()
    first = await workers.drain(db, factory.worker_id, by="ann")
    again = await workers.drain(db, factory.worker_id, by="bert")
    assert first.drain_requested_at is not None
    assert again == replace(first, seen_at=again.seen_at)
    assert factory.run(store.touch(factory.worker_id)) is True
    resumed = await workers.resume(db, factory.worker_id, by="bert")
    assert (resumed.drain_requested_at, resumed.drain_requested_by) == (None, None)
    assert factory.run(store.touch(factory.worker_id, 4096)) is False
    assert (await workers.get(db, factory.worker_id)).memory_bytes == 4096
    newest = (await audit.listing(db)).items[0]
    assert (newest.action, newest.kind, newest.name) == (
        "worker.resumed",
        "worker",
        str(factory.worker_id),
    )
    assert newest.before is not None
    assert (newest.before["worker"], newest.before["drain_requested_by"]) == ("host:1", "ann")


async def test_worker_is_notified_of_drain_at_once(db: Database, factory: JobFactory) -> None:
    factory.register()
    with factory.listening() as heard:
        await workers.drain(db, factory.worker_id, by="ann")
        await workers.resume(db, factory.worker_id, by="ann")
    assert heard == [f"drain {factory.worker_id}"] * 2


@pytest.mark.parametrize(
    "change, message",
    [
        ("stopped_at = seen_at", "is gone: it ended at"),
        ("seen_at = seen_at - interval '61 minutes'", "is gone: it was last seen at"),
    ],
)
async def test_worker_that_is_gone_is_neither_drained_nor_resumed(
    db: Database, factory: JobFactory, change: str, message: str
) -> None:
    factory.register()
    factory.conn.execute(f"update laneway.workers set {change}".encode())
    for verb in (workers.drain, workers.resume):
        with pytest.raises(Refused, match=message):
            await verb(db, factory.worker_id, by="ann")
    assert (await audit.listing(db)).items == []
    assert (await workers.get(db, factory.worker_id)).drain_requested_at is None


async def test_drain_needs_existing_worker_and_actor(db: Database, factory: JobFactory) -> None:
    factory.register()
    with pytest.raises(NotFound, match="no worker"):
        await workers.drain(db, uuid4(), by="ann")
    with pytest.raises(InvalidInput, match="by"):
        await workers.drain(db, factory.worker_id, by="")
