"""Crash drills: real workers are taken away, and the laws are checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from laneway.app.loader import load_app
from laneway.errors import ConfigError
from laneway.testing import clock
from laneway.testing.drill import Drill, drill
from laneway.testing.proxy import Proxy
from laneway.testing.scratch_database import VARIABLE
from tests.support.server_address import address, through
from tests.testing.library_app import lw

if TYPE_CHECKING:
    from tests.conftest import Server


@pytest.fixture
def run(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drill]:
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    with drill(lw, "tests.testing.library_app:lw") as run:
        yield run


@pytest.mark.slow
def test_job_of_a_stopped_worker_runs_again_elsewhere(run: Drill) -> None:
    first = run.start_worker()
    job = lw.sync.submit("hold_on_first_attempt")
    run.wait_for(job.id, "running")
    run.pause(first)
    run.start_worker()
    clock.advance(minutes=1)
    assert job.wait(timeout=120) == 2
    run.resume(first)
    run.check()
    run.kill(first)
    run.check()


@pytest.mark.slow
async def test_cut_connections_lose_nothing(run: Drill) -> None:
    async with Proxy(*address(run.dsn)) as proxy:
        run.start_worker(dsn=through(proxy, run.dsn))
        jobs = [await lw.submit("shelve", {"title": str(n)}) for n in range(20)]
        await jobs[0].wait(timeout=120)
        assert proxy.cut() > 0
        jobs.append(await lw.submit("shelve", {"title": "last"}))
        assert [await job.wait(timeout=120) for job in jobs] == [1] * 21
        run.check()
        run.end()


@pytest.mark.parametrize("how", ["first", "named", "variable"])
def test_application_with_a_database_in_code_is_refused(
    how: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    monkeypatch.setenv("DATABASE_URL", "postgresql://real/shop")
    app = f"tests.testing.fixed_database_app:{how}"
    with pytest.raises(ConfigError, match=rf"{app} does not use .*create it as Laneway\(\)"):
        drill(load_app(app), app).__enter__()


def test_variable_of_a_real_database_does_not_reach_the_drill(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    monkeypatch.setenv("DATABASE_URL", "postgresql://real/shop")
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://real/shop")
    with drill(lw, "tests.testing.library_app:lw") as run:
        assert "real" not in run.dsn


def test_application_that_cannot_be_imported_is_named(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    with pytest.raises(ConfigError, match=r"workers cannot import tests\.testing\.missing:lw"):
        drill(lw, "tests.testing.missing:lw").__enter__()


def test_broken_law_fails_the_drill(run: Drill) -> None:
    job = lw.sync.submit("shelve", {"title": "Emma"})
    with pytest.raises(AssertionError, match=rf"laws were broken:\nI12 job {job.id}: still appr"):
        run.check()


def test_status_that_does_not_come_is_named(run: Drill) -> None:
    job = lw.sync.submit("shelve", {"title": "Emma"})
    with pytest.raises(TimeoutError, match="is approved, not running, after 0 s"):
        run.wait_for(job.id, "running", timeout=0)
