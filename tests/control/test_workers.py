"""The overview tells what the database knows, as JSON values."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from laneway.control import lanes, workers
from laneway.store import leases
from laneway.store.database import Database
from laneway.store.leases import Report
from tests.control.scene import Scene


async def test_the_overview_has_lanes_active_jobs_workers_and_leader(
    db: Database, scene: Scene
) -> None:
    scene.register()
    claim = scene.running("ingestion")
    scene.run(leases.report([Report(claim, "load", 1.0, 4.0, "a page")], []))
    scene.run(leases.watch(scene.worker_id, 30.0))
    await lanes.pause(db, by="ann")
    seen = await workers.overview(db)
    assert seen.leader is not None
    assert seen.leader.id == scene.worker_id
    told: dict[str, Any] = json.loads(json.dumps(seen.to_dict()))
    assert (told["paused"], told["paused_by"]) == (True, "ann")
    assert told["leader"] == str(scene.worker_id)
    (active,) = told["active"]
    assert UUID(active["id"]) == claim.job_id
    assert (active["lane"], active["worker"]) == ("interactive", "host:1")
    assert active["progress"]["percent"] == 25.0
    (worker,) = told["workers"]
    assert (worker["running"], worker["is_leader"], worker["lanes"]) == (1, True, None)
    used = {lane["name"]: lane["slots_used"] for lane in told["lanes"]}
    assert used == {"analysis": 0, "default": 0, "interactive": 1, "maintenance": 0, "system": 0}


async def test_workers_long_silent_are_not_live(db: Database, scene: Scene) -> None:
    scene.register()
    scene.conn.execute("update laneway.workers set seen_at = seen_at - interval '50 s'")
    seen = await workers.overview(db)
    assert (len(seen.workers), seen.live, seen.leader) == (1, [], None)
