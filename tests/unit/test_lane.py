"""Lanes and the names of lanes and job types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.codec import to_json
from laneway.domain.lane import (
    SEEDED_LANES,
    Lane,
    check_job_type,
    check_lane_name,
    validate_lane_change,
)
from laneway.errors import InvalidInput


@pytest.mark.parametrize(
    "field, low, high",
    [
        ("max_slots", 0, 10000),
        ("poll_interval_ms", 100, 120_000),
        ("stale_timeout_minutes", 1, 1440),
        ("lease_seconds", 2, 3600),
    ],
)
def test_number_outside_its_range_is_refused_by_name(field: str, low: int, high: int) -> None:
    for good in (low, high):
        assert validate_lane_change({field: good}) == {field: good}
    for bad in (low - 1, high + 1, str(low), float(low), True, [low]):
        with pytest.raises(InvalidInput, match=f"{low} to {high}") as caught:
            validate_lane_change({field: bad})
        assert caught.value.field == field


def test_only_slots_may_be_unbounded() -> None:
    assert validate_lane_change({"max_slots": None}) == {"max_slots": None}
    with pytest.raises(InvalidInput):
        validate_lane_change({"lease_seconds": None})


@pytest.mark.parametrize(
    "change, field",
    [
        ({"enabled": 1}, "enabled"),
        ({"enabled": "false"}, "enabled"),
        ({"job_types": "ingestion"}, "job_types"),
        ({"job_types": ["a", "a"]}, "job_types[1]"),
        ({"job_types": ["a", ""]}, "job_types[1]"),
        ({"job_types": [5]}, "job_types[0]"),
        ({"slots": 1}, "slots"),
        ({"updated_by": "me"}, "updated_by"),
        ({"updated_at": "now"}, "updated_at"),
        ({"name": "other"}, "name"),
    ],
)
def test_change_that_breaks_a_rule_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_lane_change(change)
    assert caught.value.field == field


@pytest.mark.parametrize("change", [None, [], "lane", 5])
def test_change_is_an_object(change: Any) -> None:
    with pytest.raises(InvalidInput):
        validate_lane_change(change)


def test_change_keeps_only_named_fields() -> None:
    assert validate_lane_change({}) == {}
    assert validate_lane_change({"enabled": False, "job_types": ["a", "b"]}) == {
        "enabled": False,
        "job_types": ("a", "b"),
    }


def test_new_lane_has_one_slot_five_seconds_thirty_minutes() -> None:
    lane = Lane.of({"name": "fast"})
    assert lane == Lane("fast")
    assert (lane.max_slots, lane.poll_interval_ms, lane.stale_timeout_minutes) == (1, 5000, 30)
    assert (lane.lease_seconds, lane.enabled) == (30, True)


def test_new_lane_needs_a_name() -> None:
    with pytest.raises(InvalidInput) as caught:
        Lane.of({"max_slots": 1})
    assert caught.value.field == "name"


@pytest.mark.parametrize("name", ["a", "interactive", "gpu-a.100_x", "a" * 63])
def test_plain_lane_name_is_taken(name: str) -> None:
    assert check_lane_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "1a",
        "-a",
        "a b",
        "a;drop",
        'a"',
        "a'",
        "a\n",
        "a\x00",
        "é",
        "a" * 64,
        None,
        5,
        "a/b",
    ],
)
def test_any_other_lane_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        check_lane_name(name)


@pytest.mark.parametrize("name", ["a", "Send e-mail", "пакет", "a" * 128, "app.jobs:ingest"])
def test_printable_job_type_is_taken(name: str) -> None:
    assert check_job_type(name) == name


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", "a\n", "a\x00b", "\x7f", "\ud800", "a" * 129, "é" * 65, None, 5, "a\u202eb"],
)
def test_any_other_job_type_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput):
        check_job_type(name)


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=3)))
def test_any_change_is_accepted_or_refused_by_name(change: dict[str, Any]) -> None:
    try:
        validate_lane_change(change)
    except InvalidInput as error:
        str(error).encode()


def test_seeded_lanes_keep_their_own_rules_and_share_no_job_type() -> None:
    assert [lane.name for lane in SEEDED_LANES] == [
        "interactive",
        "maintenance",
        "system",
        "analysis",
        "default",
    ]
    job_types = [job_type for lane in SEEDED_LANES for job_type in lane.job_types]
    assert len(job_types) == len(set(job_types)) == 12
    for lane in SEEDED_LANES:
        shown = to_json(lane)
        del shown["updated_at"], shown["updated_by"]
        assert Lane.of(shown) == lane
    assert SEEDED_LANES[-1].max_slots is None
