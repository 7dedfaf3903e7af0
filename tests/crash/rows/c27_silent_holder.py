"""C27: servers and workers fall silent with the row of a lane or a limit, or the gate, in hand.

A server's connection is swallowed as it commits a change: PostgreSQL goes on waiting for it, with
all its locks. A worker's connections are swallowed while its jobs fill the lane.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from uuid import UUID

import httpx2

from laneway import Laneway
from laneway.config import Settings
from laneway.control import health
from laneway.control.explain import explain
from laneway.control.health import Finding
from laneway.store.database import Database
from laneway.testing import faults
from laneway.testing.proxy import Proxy
from tests.address import address, through
from tests.crash.rows.c19_streams import Replica, serving, token_of
from tests.crash.stage import Stage, until

ROUNDS = 3
RESUME_S = 5.0
PATIENCE_S = 40.0
# What a server changes, over HTTP, and a job that cannot be claimed meanwhile.
CHANGES = {
    "lane": ("PATCH", "/admin/workers/lanes/narrow", {"poll_interval_ms": 300}, "narrow"),
    "limit": ("PUT", "/admin/limits/scarce", {"max_concurrent": 4}, "limited"),
    "gate": ("POST", "/admin/workers/pause", {}, "narrow"),
}


async def play(stage: Stage) -> None:
    stage.app = "tests.crash.house:lw"
    token = token_of(stage, "operator")
    async with Proxy(*address(stage.dsn)) as proxy:
        replica = Replica(stage, through(proxy, stage.dsn))
        try:
            worker = stage.start_worker()
            await stage.ready(worker)
            async with stage.client() as client, httpx2.AsyncClient(timeout=60) as http:
                await serving(http, [replica])
                headers = {"Authorization": f"Bearer {token}"}
                for _ in range(stage.count(ROUNDS)):
                    for kind, (method, path, body, job_type) in CHANGES.items():
                        # Known to work, and its connections are there.
                        (await http.get(f"{replica.url}/me", headers=headers)).raise_for_status()
                        proxy.swallow_when(b"commit")
                        asking = asyncio.create_task(
                            http.request(method, replica.url + path, json=body, headers=headers)
                        )
                        async with asyncio.timeout(PATIENCE_S):
                            await proxy.swallowed.wait()
                        await _resumed(stage, client, kind, job_type)
                        with contextlib.suppress(httpx2.HTTPError):
                            await asking
        finally:
            replica.end()
        await _worker(stage, proxy)
        await stage.drain(RESUME_S + 5)


async def _resumed(stage: Stage, client: Laneway, kind: str, job_type: str) -> None:
    """Submits a job that needs what is held, and waits until it runs."""
    began, at = time.monotonic(), stage.clock()
    stage.fault(kind=kind)
    (job,) = await stage.submit(client, stage.job(job_type, ms=1))
    naming = asyncio.create_task(_named(stage, job))
    try:
        await until(_claimed(stage, job), PATIENCE_S, f"a claim with the {kind} held", 0.01)
    finally:
        is_named = await naming
    took = time.monotonic() - began
    stage.history.add("resumed", kind=kind, took=took, named=is_named, at=at)


def _claimed(stage: Stage, job: str) -> Callable[[], bool]:
    asked = "select attempt > 0 from laneway.jobs_view where id = %s"
    return lambda: bool(stage.ask(asked, job))


async def _named(stage: Stage, job: str) -> bool:
    """Whether explain and doctor name the blocker while it blocks."""
    database = Database(stage.dsn, Settings.load(database_url=stage.dsn), role="crash explain")
    told: set[str] = set()
    is_claimed = _claimed(stage, job)
    try:
        while len(told) < 2 and not is_claimed():
            reasons = (await explain(database, UUID(job))).reasons
            told |= {"explain" for r in reasons if r.code == "locked" and "pid" in r.message}
            found = await health.check_blockers(database)
            if found.finding is not Finding.OK and "laneway" in found.message:
                told.add("doctor")
            await asyncio.sleep(0.1)
    finally:
        await database.close()
    return len(told) == 2


async def _worker(stage: Stage, proxy: Proxy) -> None:
    """A worker whose jobs fill a lane falls silent for good; another one has the lane."""
    before = stage.worker_dsn
    for worker in stage.workers:
        faults.end_all(worker.tree())
    stage.worker_dsn = through(proxy, stage.dsn)
    silent = stage.start_worker(lanes="narrow")
    await stage.ready(silent)
    stage.worker_dsn = before
    async with stage.client() as client:
        jobs = [stage.job("narrow", ms=60_000) for _ in range(3)]
        await stage.submit(client, *jobs)
        running = "select count(*) = 3 from laneway.lease where lane = 'narrow'"
        await until(lambda: bool(stage.ask(running)), 30, "the lane is full")
        other = stage.start_worker()
        await stage.ready(other)
        proxy.blackhole()
        proxy.swallow()
        began = time.monotonic()
        stage.fault(kind="worker")
        await until(
            lambda: bool(stage.ask("select exists (select from laneway.lease where attempt > 1)")),
            PATIENCE_S,
            "another worker has the lane",
            0.01,
        )
        took = time.monotonic() - began
        stage.history.add("resumed", kind="worker", took=took, named=True)
        faults.end_all(silent.tree())
        proxy.heal()
        for job in (
            stage.ask(
                "select array_agg(id::text) from laneway.jobs_view where lane ="
                " 'narrow' and status <> 'completed'"
            )
            or []
        ):
            await stage.cancel(client, job)


def look(stage: Stage) -> None:
    resumed = stage.history.of("resumed")
    took = [event.more["took"] for event in resumed]
    worst = max(took, default=99.0)
    kinds = {event.more["kind"] for event in resumed}
    stage.result.figures["claims_resume_s"] = round(worst, 2)
    stage.result.must(
        f"claims go on ≤ {RESUME_S:g} s after the silence",
        f"{worst:.2f} s of {len(took)}",
        held=worst <= RESUME_S and kinds == {*CHANGES, "worker"},
    )
    unnamed = [event.more["kind"] for event in resumed if not event.more["named"]]
    stage.result.must("blockers that nobody named", unnamed, held=not unnamed)
