"""A set of lanes replaces the lanes of a database; jobs keep the bounds of their lane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from laneway.config.lanes import PRESETS, preset, read_lanes
from laneway.domain.lane import SEEDED_LANES, Lane
from laneway.domain.lane_setup import (
    KEPT,
    check_setup,
    plan_setup,
    read_table,
    state_of,
    table_of,
)
from laneway.errors import InvalidInput

PRESENT = {
    lane.name: lane
    for lane in (
        Lane("default", max_slots=None, poll_interval_ms=1000),
        Lane("analysis", max_slots=4),
        Lane("docs", ("index", "crawl"), max_slots=3),
        Lane("video", ("render",), max_slots=1),
    )
}


def changes(
    table: dict[str, Any], running: dict[str, int] | None = None, waiting: set[str] | None = None
) -> dict[str, tuple[str, dict[str, Any]]]:
    wanted = check_setup(read_table(table))
    return {
        each.name: (each.action, {name: new for name, (_, new) in each.differences.items()})
        for each in plan_setup(wanted, PRESENT, running or {}, waiting or set())
    }


def test_presets_are_the_seeded_lanes_with_and_without_job_types() -> None:
    seeded = {lane.name: lane for lane in SEEDED_LANES if lane.name != "analysis"}
    assert {lane.name: lane for lane in preset("knowledge-graph")} == seeded
    plain = {name: replace(lane, job_types=()) for name, lane in seeded.items()}
    assert {lane.name: lane for lane in preset("plain")} == plain
    assert PRESETS == ("knowledge-graph", "plain")


def test_set_creates_changes_and_deletes() -> None:
    table = {"docs": {"max_slots": 5, "job_types": ["index"]}, "mail": {"job_types": ["send"]}}
    assert changes(table) == {
        "docs": ("changed", {"job_types": ["index"], "max_slots": 5}),
        "mail": ("created", {**state_of(Lane("mail")), "job_types": ["send"]}),
        "video": ("deleted", dict.fromkeys(state_of(PRESENT["video"]))),
    }


def test_set_that_is_in_force_changes_nothing() -> None:
    assert changes({name: state_of(lane) for name, lane in PRESENT.items()}) == {}
    assert changes(table_of(read_table({"docs": {"job_types": ["index", "crawl"], "max_slots": 3},
                                        "video": {"job_types": ["render"]}}))) == {}  # fmt: skip


def test_default_and_analysis_stay_unless_they_are_given() -> None:
    assert sorted(KEPT) == ["analysis", "default"]
    assert "default" not in changes({"docs": {}})
    assert changes({"default": {"max_slots": 9}})["default"] == (
        "changed",
        {"max_slots": 9, "poll_interval_ms": 5000},
    )


def test_lane_with_jobs_is_drained_instead_of_deleted() -> None:
    table = {"docs": {"job_types": ["index"], "max_slots": 3}}
    assert changes(table, running={"video": 1})["video"] == ("drained", {"enabled": False})
    assert changes(table, waiting={"render"})["video"] == ("drained", {"enabled": False})
    # The jobs of a type that the set puts elsewhere go there with it.
    moved = {"docs": {"job_types": ["index", "render"], "max_slots": 3}}
    assert changes(moved, waiting={"render"})["video"][0] == "deleted"
    assert changes(moved, running={"video": 2})["video"] == (
        "drained",
        {"job_types": [], "enabled": False},
    )
    (drained,) = [
        each
        for each in plan_setup((Lane("docs"),), PRESENT, {"video": 2}, {"render"})
        if each.name == "video"
    ]
    assert drained.reason == "2 jobs run in it, jobs of render wait in it"


def test_drained_lane_stays_drained_unless_the_set_enables_it() -> None:
    present = {**PRESENT, "docs": replace(PRESENT["docs"], enabled=False)}
    same = {"max_slots": 3, "job_types": ["index", "crawl"]}
    for given, expected in (({}, []), ({"enabled": True}, ["docs"])):
        wanted = tuple(read_table({"docs": {**same, **given}, "video": {"job_types": ["render"]}}))
        assert [each.name for each in plan_setup(wanted, present, {}, ())] == expected


@pytest.mark.parametrize(
    "table, message",
    [
        ([{"name": "a"}, {"name": "a"}], "lanes: names the lane a twice"),
        ({"a": {"job_types": ["t"]}, "b": {"job_types": ["t"]}}, "lanes: puts the job type t into"),
        ({"default": {"job_types": ["t"]}}, "lane default, job_types: must be empty"),
        ({"analysis": {"job_types": ["t"]}}, "lane analysis, job_types: must be empty"),
        ({"a": {"max_slots": -1}}, "lane a, max_slots: must be a whole number"),
        ({"a": 3}, "a: must be a table of lane settings"),
        (3, "lanes: must be a list of lanes"),
    ],
)
def test_set_that_contradicts_itself_is_refused(table: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_setup(read_table(table))
    assert str(caught.value).startswith(message)


def test_preset_that_does_not_exist_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"cannot read the file plian .*; did you mean plain\?"):
        read_lanes("plian")
