"""Explain and doctor name the session that keeps claims waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from laneway.control import health
from laneway.control.explain import explain
from laneway.control.health_check import Finding
from laneway.store.database import Database
from tests.support.job_factory import JobFactory

PATIENCE_S = 60.0
LANE = "select from laneway.worker_lanes where name = 'default' for no key update"
GATE = "select pg_advisory_xact_lock(5577006791947779410)"
LIMIT = "update laneway.limits set max_concurrent = 2 where name = 'openai'"


@pytest.fixture
def silent(dsn: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(dsn, application_name="blocker") as conn:
        yield conn


@pytest.mark.parametrize("lock", [LANE, GATE, LIMIT])
async def test_explain_and_doctor_name_holders_of_claim_locks(
    db: Database, factory: JobFactory, silent: psycopg.Connection[tuple[object, ...]], lock: str
) -> None:
    factory.register()
    factory.publish()
    job_id = factory.submit()
    silent.execute(lock.encode())
    deadline = time.monotonic() + PATIENCE_S
    while "locked" not in (codes := [r.code for r in (await explain(db, job_id)).reasons]):
        assert time.monotonic() < deadline, codes
        await asyncio.sleep(0.05)
    explained = await explain(db, job_id)
    assert [reason.code for reason in explained.reasons] == ["locked", "first_in_lane"]
    assert explained.starts_in_s is None
    pid = silent.info.backend_pid
    for message in (explained.reasons[0].message, (await health.check_blockers(db)).message):
        assert f"pid {pid} (blocker, " in message
        assert "idle in transaction" in message
    check = await health.check_blockers(db)
    assert check.finding is Finding.WARN
    assert check.next == f"select pg_terminate_backend({pid});"
    silent.rollback()
    assert [r.code for r in (await explain(db, job_id)).reasons] == ["about_to_start"]
    assert (await health.check_blockers(db)).finding is Finding.OK


async def test_doctor_fails_while_a_claim_waits_for_a_lock(
    db: Database, factory: JobFactory, silent: psycopg.Connection[tuple[object, ...]], dsn: str
) -> None:
    silent.execute(LANE)
    with psycopg.connect(dsn, application_name="laneway claim") as claim:
        waits = asyncio.ensure_future(asyncio.to_thread(claim.execute, LANE))
        deadline = time.monotonic() + PATIENCE_S
        while (check := await health.check_blockers(db)).finding is not Finding.FAIL:
            assert time.monotonic() < deadline, check
            await asyncio.sleep(0.05)
        # Only the holder of the lock is named, not the waiters.
        assert f"pid {silent.info.backend_pid} " in check.message
        assert "more" not in check.message
        silent.rollback()
        await waits
