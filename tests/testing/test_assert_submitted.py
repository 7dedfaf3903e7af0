"""`assert_submitted` finds jobs by type, part of their arguments and options."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import psycopg
import pytest

from laneway import Laneway
from laneway.errors import InvalidInput
from laneway.testing import assert_submitted, clock, submitted
from tests.testing.library_app import lend, shelve


def test_job_is_found_by_type_name_and_some_arguments(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("shelve", {"title": "Emma", "copies": 2})
    assert [one.id for one in assert_submitted(shelve, title="Emma")] == [job.id]
    assert_submitted("shelve", copies=2)
    assert_submitted(shelve, title=ANY)


def test_missing_job_shows_what_was_submitted(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("shelve", {"title": "Emma"}, priority=3)
    with pytest.raises(AssertionError) as caught:
        assert_submitted(shelve, title="Persuasion")
    text = str(caught.value)
    assert text.startswith("shelve was not submitted with title='Persuasion'")
    assert """{"title": "Emma"}  status='approved', priority=3""" in text


def test_missing_type_shows_the_types_submitted(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("shelve", {"title": "Emma"})
    with pytest.raises(AssertionError, match=r"submitted job types: shelve \(1\)"):
        assert_submitted(lend)


def test_count_is_exact(laneway_app: Laneway) -> None:
    assert_submitted(shelve, count=0)
    laneway_app.sync.submit_many([("shelve", {"title": "Emma"})] * 2)
    assert_submitted(shelve, count=2, title="Emma")
    with pytest.raises(AssertionError, match=r"submitted 2 times .*expected 1"):
        assert_submitted(shelve, count=1, title="Emma")


def test_options_of_the_job_are_compared(laneway_app: Laneway) -> None:
    laneway_app.sync.submit(
        "shelve", {"title": "Emma"}, priority=7, tags=["new"], unique_key="emma", delay=60
    )
    assert_submitted(
        shelve,
        priority=7,
        tags=["new"],
        unique_key="emma",
        run_at=clock.now() + timedelta(minutes=1),
    )
    with pytest.raises(AssertionError, match="priority=8"):
        assert_submitted(shelve, priority=8)


def test_argument_named_like_an_option_goes_into_the_payload(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("lend", {"title": "Emma", "priority": 4})
    assert_submitted(lend, payload={"priority": 4})
    with pytest.raises(AssertionError):
        assert_submitted(lend, priority=4)


def test_arguments_are_compared_as_stored(laneway_app: Laneway) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    laneway_app.sync.submit("lend", lend.handler.arguments.encode({"title": "Emma", "at": at}))
    assert_submitted(lend, at=at)


def test_argument_that_the_handler_does_not_have_is_refused(laneway_app: Laneway) -> None:
    with pytest.raises(InvalidInput, match=r"titel: is neither an argument of shelve \(copies, t"):
        assert_submitted(shelve, titel="Emma")


def test_job_of_an_open_transaction_counts_after_its_commit(
    laneway_app: Laneway, laneway_database: str
) -> None:
    with psycopg.connect(laneway_database) as conn:
        laneway_app.sync.submit("shelve", {"title": "Emma"}, conn=conn)
        with pytest.raises(AssertionError, match="once that transaction is committed"):
            assert_submitted(shelve)
        conn.commit()
        assert_submitted(shelve)


def test_submitted_returns_all_jobs_in_order(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("shelve", {"title": "Emma"})
    laneway_app.sync.submit("lend", {"title": "Emma"})
    assert [job.job_type for job in submitted()] == ["shelve", "lend"]
    assert [job.job_type for job in submitted(lend)] == ["lend"]
