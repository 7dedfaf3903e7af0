"""Limits, and readable changes of the control plane."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from laneway.domain.change import Change
from laneway.domain.limit import Limit, check_limit_name, validate_limit_change
from laneway.errors import InvalidInput


@pytest.mark.parametrize(
    "field,low,high", [("max_concurrent", 0, 10_000), ("rate_count", 1, 1_000_000)]
)
def test_number_outside_its_range_is_refused_by_name(field: str, low: int, high: int) -> None:
    other = {"rate_period_s": 60} if field == "rate_count" else {}
    for good in (low, high):
        assert validate_limit_change({field: good, **other})[field] == good
    for bad in (low - 1, high + 1, str(low), float(low), True, [low]):
        with pytest.raises(InvalidInput, match=f"{low} to {high}") as caught:
            validate_limit_change({field: bad, **other})
        assert caught.value.field == field


@pytest.mark.parametrize(
    "change,field",
    [
        ({"rate_count": 5}, "rate_period_s"),
        ({"rate_period_s": 5}, "rate_count"),
        ({"rate_count": None}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": None}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": 0.01}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": float("nan")}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": float("inf")}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": True}, "rate_period_s"),
        ({"rate_count": 5, "rate_period_s": "60"}, "rate_period_s"),
        ({"scope": "planet"}, "scope"),
        ({"scope": ["cluster"]}, "scope"),
        ({"slots": 1}, "slots"),
        ({"updated_by": "me"}, "updated_by"),
        ({"name": "other"}, "name"),
    ],
)
def test_change_that_breaks_a_rule_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate_limit_change(change)
    assert caught.value.field == field


@pytest.mark.parametrize("change", [None, [], "limit", 5])
def test_change_is_an_object(change: Any) -> None:
    with pytest.raises(InvalidInput):
        validate_limit_change(change)


def test_change_keeps_named_fields_and_null_removes_bounds() -> None:
    assert validate_limit_change({}) == {}
    nothing = {"max_concurrent": None, "rate_count": None, "rate_period_s": None}
    assert validate_limit_change(nothing) == nothing


def test_new_limit_is_one_at_a_time_in_the_whole_cluster() -> None:
    assert Limit.of({"name": "gpu"}) == Limit("gpu", 1, None, None, "cluster")
    with pytest.raises(InvalidInput, match="name: is required"):
        Limit.of({})
    for name in ("", "GPU", "a b", "x" * 64, 5):
        with pytest.raises(InvalidInput):
            check_limit_name(name)


def change(before: dict[str, object] | None, after: dict[str, object] | None) -> Change:
    return Change(1, datetime(2030, 1, 1, tzinfo=UTC), "ann", "limit", "gpu", before, after)


def test_change_shows_only_differences() -> None:
    changed = change({"a": 1, "b": [1], "old": 3}, {"a": 1, "b": [2], "new": None, "c": 4})
    assert changed.differences == {"b": ([1], [2]), "c": (None, 4), "old": (3, None)}
    assert changed.verb == "changed"
    assert (change(None, {}).verb, change(None, {"a": 1}).differences) == ("created", {})
    assert (change({}, None).verb, change({"a": 1}, None).differences) == ("deleted", {})


@pytest.mark.parametrize("wrong", [10**400, float("nan"), float("inf"), "1m", True])
def test_invalid_period_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        validate_limit_change({"rate_count": 5, "rate_period_s": wrong})
    assert refused.value.field == "rate_period_s"
