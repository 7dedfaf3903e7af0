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
from laneway.store import health as store
from laneway.store.aborted_statements import StatementTimeout
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


TABLE = "lock table laneway.jobs in access exclusive mode"


async def test_doctor_names_the_holder_of_a_table_and_goes_on(
    db: Database, silent: psycopg.Connection[tuple[object, ...]]
) -> None:
    silent.execute(TABLE)
    found = {check.name: check async for check in health.examine(db)}
    pid = silent.info.backend_pid
    assert found["jobs"].finding is Finding.FAIL
    assert "not checked: a statement waited too long" in found["jobs"].message
    assert f"pid {pid} (blocker, " in found["jobs"].message
    assert found["jobs"].next == f"select pg_terminate_backend({pid});"
    assert list(found)[-2:] == ["rights", "snapshots"]
    assert found["rights"].finding is Finding.OK
    names = list(found)
    assert names.index("blockers") < names.index("schema") < names.index("jobs")
    # By now the lock is old enough.
    assert f"pid {pid} (blocker, " in (await health.check_blockers(db)).message


async def test_doctor_does_not_wait_for_the_migrations(
    db: Database, silent: psycopg.Connection[tuple[object, ...]]
) -> None:
    silent.execute("lock table laneway.migrations")
    found = {check.name: check async for check in health.examine(db)}
    assert f"pid {silent.info.backend_pid} (blocker, " in found["schema"].message
    assert "settings" in found


async def test_explain_names_the_holder_of_a_table(
    db: Database, factory: JobFactory, silent: psycopg.Connection[tuple[object, ...]]
) -> None:
    job_id = factory.submit()
    silent.execute(TABLE)
    pid = silent.info.backend_pid
    with pytest.raises(StatementTimeout, match=rf"pid {pid} \(blocker, .*_backend\({pid}\)"):
        await explain(db, job_id)


async def test_doctor_goes_on_if_it_cannot_see_the_holder_of_a_lock(
    db: Database,
    silent: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = store.find_blockers
    # As for a role that does not see how old the transactions of others are.
    monkeypatch.setattr(store, "find_blockers", lambda age_s=0.0: find(age_s=1e6))
    silent.execute(TABLE)
    found = {check.name: check async for check in health.examine(db)}
    assert "not checked: a statement waited too long (" in found["jobs"].message
    assert "pg_monitor" in (found["jobs"].next or "")
    assert "snapshots" in found
