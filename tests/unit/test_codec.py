"""Values of the domain as JSON and back, by their types alone."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.change import Change
from laneway.domain.codec import UnreadableJson, from_json, to_json
from laneway.domain.job import Attempt, Job
from laneway.domain.job_error import PRIVATE_MESSAGE, JobError
from laneway.domain.lane import Lane, TunedLane
from laneway.domain.overview import LaneDetail, LaneStatus, PriorityLoad, TypeLoad
from laneway.domain.review import Review
from laneway.domain.states import Status

TEXT = st.text(max_size=5)
SECONDS = st.none() | st.floats(0, 1e6)
NUMBER = st.integers(0, 2**31)
TIMES = st.datetimes(timezones=st.timezones())
STATES = st.none() | st.dictionaries(TEXT, NUMBER, max_size=2)
LANES = st.builds(
    Lane, TEXT, st.lists(TEXT).map(tuple), st.none() | NUMBER, updated_at=st.none() | TIMES
)
CHANGES = st.builds(
    Change, NUMBER, TIMES, TEXT, st.sampled_from(["lane", "gate"]), TEXT, STATES, STATES
)
LOADS = st.builds(TypeLoad, TEXT, NUMBER, st.booleans(), SECONDS)
PRIORITIES = st.builds(PriorityLoad, TEXT, NUMBER, st.booleans(), SECONDS, st.integers())
DETAILS = st.builds(
    LaneDetail,
    LANES,
    NUMBER,
    st.lists(LOADS, max_size=2).map(tuple),
    st.none() | TEXT,
    st.lists(PRIORITIES, max_size=2).map(tuple),
)
TUNED = st.builds(TunedLane.after, st.none() | CHANGES, LANES)


@given(st.one_of(LANES, CHANGES, DETAILS, TUNED))
def test_json_of_a_value_reads_back_as_the_value(value: Any) -> None:
    assert from_json(type(value), json.loads(json.dumps(to_json(value)))) == value


def test_lane_is_shown_with_its_status_on_one_level() -> None:
    shown = to_json(LaneStatus(Lane("a", max_slots=4), 1, (TypeLoad("t", 2, True, None),), "ann"))
    assert shown["name"] == "a"
    assert (shown["utilization"], shown["frozen"], shown["depth"]) == (0.25, True, 2)
    assert shown["waiting"] == [
        {"job_type": "t", "depth": 2, "depth_is_capped": True, "oldest_wait_s": None}
    ]
    assert not {"lane", "named"} & shown.keys()


def test_ranges_and_unknown_fields_do_not_hinder_reading() -> None:
    """An old client reads the response of a newer server."""
    newer = {**to_json(Lane("a")), "max_slots": 10**9, "colour": "red"}
    assert from_json(Lane, newer).max_slots == 10**9


@pytest.mark.parametrize(
    "wrong, place",
    [
        ({"max_slots": "3"}, "max_slots"),
        ({"enabled": 1}, "enabled"),
        ({"lease_seconds": True}, "lease_seconds"),
        ({"job_types": "a"}, "job_types"),
        ({"job_types": ["a", 1]}, "job_types[1]"),
        ({"updated_at": "yesterday"}, "updated_at"),
    ],
)
def test_json_of_another_shape_is_refused_by_its_place(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(UnreadableJson) as caught:
        from_json(Lane, {**to_json(Lane("a")), **wrong})
    assert str(caught.value).startswith(f"{place}: ")


def test_missing_field_is_refused_unless_it_has_a_default() -> None:
    assert from_json(Lane, {"name": "a"}) == Lane("a")
    with pytest.raises(UnreadableJson, match="name: is missing"):
        from_json(Lane, {})


def test_private_fields_are_left_out_and_may_be_missing() -> None:
    attempt = Attempt(1, error=JobError("ValueError", "no", "secret"), log_lines=3)
    shown = to_json(attempt.public(), private=False)
    assert not {"log", "log_lines"} & shown.keys()
    assert shown["error"] == {"type": "ValueError", "message": PRIVATE_MESSAGE}
    assert from_json(Attempt, {"attempt": 1, "log": None}) == Attempt(1)


def test_review_shows_the_job_its_attempts_then_the_rest() -> None:
    job = Job(id=UUID(int=1), job_type="t", lane="a", status=Status.RUNNING, attempts=(Attempt(1),))
    shown = list(to_json(Review(job, "s", False, ())))
    assert shown[:5] == ["id", "job_type", "lane", "status", "label"]
    rest = ["attempts", "seal", "two_person", "decisions", "traceparent", "steps"]
    rest += ["waits", "after", "after_failure", "owner", "followers"]
    assert shown[-len(rest) :] == rest
    assert not {"job", "duplicate"} & set(shown)
