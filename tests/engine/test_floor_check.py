"""The look for jobs below the floors: it delays nothing, ends soon, and is not repeated at once."""

from __future__ import annotations

import asyncio

import pytest

from laneway import Context
from laneway.engine.claim import floor_check
from laneway.engine.claim.floor_check import FloorCheck
from laneway.engine.claim.floors import Floors
from laneway.observability.log_throttle import LogThrottle
from laneway.store import statement
from laneway.store.database import Database
from tests.support.worker_harness import WorkerHarness, wait_until

LOOKING = (
    "select pid from pg_stat_activity where datname = current_database()"
    " and query ~ 'pg_sleep' and state = 'active' and pid <> pg_backend_pid()"
)
COUNT = (
    "select count(*) from pg_stat_activity where datname = current_database()"
    " and application_name like 'laneway strays%'"
)


@pytest.fixture
def slow_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes an hour."""
    read = statement.sql

    def sql(name: str) -> str:
        return "select pg_sleep(3600)::text" if name == "lanes/find_below_floors" else read(name)

    monkeypatch.setattr(statement, "sql", sql)


class Raised(Floors):
    """Floors of a type that has been claimed from."""

    def heights(self) -> list[tuple[str, int, int]]:
        return [("job", 0, 1)]


@pytest.mark.usefixtures("slow_look")
async def test_progress_is_stored_while_a_look_is_blocked(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor_check, "EVERY_S", 0.05)
    monkeypatch.setattr(floor_check, "LONGEST_S", 3600.0)
    looking = asyncio.Event()

    @harness.lw.handler("first")
    async def first(ctx: Context) -> None: ...

    @harness.lw.handler("second")
    async def second(ctx: Context) -> str:
        await looking.wait()
        await ctx.save({"at": 1})
        return "saved"

    await harness.start_worker_with({"statement_timeout": 3600.0})
    for _ in range(3):
        # Floors rise with a claim after the one that saw the jobs.
        await (await harness.lw.submit("first")).wait(60)
    job = await harness.lw.submit("second")
    before = await wait_until(lambda: harness.rows(LOOKING))
    looking.set()
    assert await job.wait(60) == "saved"
    assert harness.rows(LOOKING) == before, "the same look is still under way"


@pytest.mark.usefixtures("slow_look")
async def test_look_that_takes_too_long_is_given_up_and_leaves_no_connection(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor_check, "LONGEST_S", 0.2)
    database = Database(harness.dsn, harness.lw.settings, role="tests", size=1)
    found: list[set[str]] = []
    look = FloorCheck(database, LogThrottle(), lambda: [Raised()], found.append)
    delay = await look.run_once()
    assert "strays: " in caplog.text
    assert delay is not None
    assert delay >= floor_check.EVERY_S, "a failed look is not repeated at once"
    assert delay >= floor_check.PAUSE_TIMES * 0.2
    assert found == []
    await wait_until(lambda: harness.one(COUNT) == 0)
    assert database.in_use == database.idle == 0
    await database.close()
