"""Filters know whether they are empty, and refuse invalid values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from laneway.domain.filter import JobConditions, JobFilter
from laneway.domain.permissions import Reach
from laneway.domain.states import Status
from laneway.errors import InvalidInput

NOW = datetime(2030, 1, 1, tzinfo=UTC)
EVERYTHING: dict[str, Any] = {
    "status": Status.FAILED,
    "lane": "interactive",
    "job_type": "ingestion",
    "tag": "red",
    "worker": "host:1",
    "workspace": "default",
    "since": NOW - timedelta(days=1),
    "until": NOW,
    "older_than": 60.0,
    "newer_than": 3600.0,
    "q": "Zeitüberschreitung",
    "max_cost": 0,
    "unit": "EUR",
    "error_type": "ConnectTimeout",
    "flow": UUID(int=7),
    "was_approved": True,
    "ended_since": NOW,
    "ended_within": 60.0,
}


def test_filter_is_empty_only_without_fields() -> None:
    assert JobFilter().is_empty
    assert JobFilter().check() == JobFilter()
    for name, value in EVERYTHING.items():
        assert not JobFilter(**{name: value}).is_empty, name


def test_reach_alone_leaves_filter_empty() -> None:
    assert JobFilter(within=Reach(()), private=Reach(()), delayed=True).is_empty


def test_every_field_accepts_its_values() -> None:
    assert {*EVERYTHING, "within", "private", "delayed"} == set(JobFilter.__slots__)
    assert set(EVERYTHING) == JobConditions.__annotations__.keys()
    wanted = JobFilter(**EVERYTHING)
    assert wanted.check() is wanted


def test_status_may_be_its_label() -> None:
    assert JobFilter.of({"status": "queued"}).status is Status.APPROVED
    with pytest.raises(InvalidInput, match="did you mean queued"):
        JobFilter.of({"status": "quued"})


@pytest.mark.parametrize(
    "field,value",
    [
        ("status", "nope"),
        ("lane", "Not a lane"),
        ("job_type", ""),
        ("job_type", "a\nb"),
        ("tag", ""),
        ("tag", "x" * 129),
        ("worker", "a\x00"),
        ("workspace", "x" * 129),
        ("q", ""),
        ("q", "\ud800"),
        ("q", "x" * 1001),
        ("q", 7),
        ("since", "yesterday"),
        ("since", datetime(2030, 1, 1)),  # noqa: DTZ001 - that is the point
        ("until", 5),
        ("older_than", -1),
        ("older_than", float("nan")),
        ("older_than", float("inf")),
        ("older_than", True),
        ("older_than", 1e300),
        ("max_cost", -0.01),
        ("max_cost", float("inf")),
        ("max_cost", "5"),
        ("max_cost", 10**400),
        ("older_than", 10**400),
        ("newer_than", -1),
        ("newer_than", "1h"),
        ("newer_than", 10**400),
        ("unit", "EUR"),
        ("error_type", ""),
        ("error_type", "x" * 801),
        ("was_approved", "yes"),
        ("ended_since", datetime(2030, 1, 1)),  # noqa: DTZ001
        ("ended_within", -1),
    ],
)
def test_invalid_value_is_refused_with_its_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        JobFilter(**{field: value}).check()
    assert refused.value.field == field


def test_span_that_holds_nothing_is_refused() -> None:
    for since in (NOW, NOW + timedelta(seconds=1)):
        with pytest.raises(InvalidInput, match="until: must be after since"):
            JobFilter(since=since, until=NOW).check()
    with pytest.raises(InvalidInput, match="older_than: must be less than newer_than"):
        JobFilter(older_than=60, newer_than=60).check()


def test_max_cost_requires_unit() -> None:
    with pytest.raises(InvalidInput, match="unit: must be given with max_cost"):
        JobFilter(max_cost=5).check()


def test_condition_that_no_job_of_the_status_can_meet_is_refused() -> None:
    with pytest.raises(InvalidInput, match="error_type: is for jobs that are failed or cancelled"):
        JobFilter(error_type="OSError", status=Status.RUNNING).check()
    with pytest.raises(InvalidInput, match="was_approved: no job that is pending was approved"):
        JobFilter(was_approved=True, status=Status.PENDING).check()
    with pytest.raises(InvalidInput, match="ended_within: no job that is running has ended"):
        JobFilter(ended_within=60, status=Status.RUNNING).check()


def test_filter_is_described_in_words_without_the_reach_of_its_caller() -> None:
    wanted = JobFilter(
        job_type="send_mail", status=Status.FAILED, q="timed out", since=NOW, within=Reach(())
    )
    assert wanted.describe() == (
        'status=failed job_type=send_mail since=2030-01-01T00:00:00+00:00 q="timed out"'
    )
    assert JobFilter(within=Reach(())).describe() == "all jobs"
