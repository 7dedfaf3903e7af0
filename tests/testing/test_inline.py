"""With `inline`, a submit returns after its job has run."""

from __future__ import annotations

import psycopg
import pytest

from laneway import Laneway
from laneway.errors import LanewayError
from laneway.testing import clock, inline, run_due
from tests.testing.library_app import calls, shelve


def test_sync_submit_runs_the_job_before_it_returns(laneway_app: Laneway) -> None:
    with inline():
        job = laneway_app.sync.submit("shelve", {"title": "Emma"})
        assert job.get().status == "completed"
        laneway_app.sync.submit_many([("shelve", {"title": "Persuasion"})])
    assert [call[1] for call in calls] == ["Emma", "Persuasion"]


async def test_async_submit_runs_the_job_before_it_returns(laneway_app: Laneway) -> None:
    with inline():
        job = await shelve.submit(title="Emma")
        assert (await job.get()).status == "completed"


def test_exception_of_the_handler_is_raised_by_the_submit(laneway_app: Laneway) -> None:
    with inline(), pytest.raises(ValueError, match="spine"):
        laneway_app.sync.submit("bind", {"title": "broken"})


def test_job_of_a_transaction_runs_after_its_commit(
    laneway_app: Laneway, laneway_database: str
) -> None:
    with inline(), psycopg.connect(laneway_database) as conn:
        job = laneway_app.sync.submit("shelve", {"title": "Emma"}, conn=conn)
        assert calls == []
        conn.commit()
        run_due()
        assert job.get().status == "completed"


def test_job_that_a_handler_submits_runs_after_that_handler(laneway_app: Laneway) -> None:
    with inline():
        laneway_app.sync.submit("lend", {"title": "Emma"})
        assert calls == []
        clock.advance(hours=1)
        laneway_app.sync.submit("shelve", {"title": "Emma"})
    assert ("remind", "Emma") in calls


def test_submits_after_the_block_wait_again(laneway_app: Laneway) -> None:
    with inline():
        pass
    job = laneway_app.sync.submit("shelve", {"title": "Emma"})
    assert job.get().status == "approved"


def test_inline_is_not_nested(laneway_app: Laneway) -> None:
    with inline(), pytest.raises(LanewayError, match="already on"), inline():
        pass
