"""Lanes and limits in code are checked when they are written down."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway import Lane, Laneway, Limit
from laneway.domain import lane, limit
from laneway.domain.limit import parse_rate, rate_text
from laneway.errors import ConfigError, InvalidInput


def test_declared_lane_has_given_settings_and_defaults_of_a_new_lane() -> None:
    docs = Lane("docs", max_slots=20, job_types=["index"])
    assert isinstance(docs, lane.Lane)
    assert (docs.name, docs.max_slots, docs.job_types) == ("docs", 20, ("index",))
    assert (docs.poll_interval_ms, docs.stale_timeout_minutes, docs.enabled) == (5000, 30, True)
    assert Lane("open", max_slots=None).max_slots is None


def test_declared_limit_has_a_rate() -> None:
    llm = Limit("llm", max_concurrent=4, rate="20/s")
    assert isinstance(llm, limit.Limit)
    assert (llm.max_concurrent, llm.rate_count, llm.rate_period_s) == (4, 20, 1.0)
    assert (llm.rate, llm.scope) == ("20/s", "cluster")
    assert (Limit("gpu").max_concurrent, Limit("gpu").rate) == (1, "none")
    assert Limit("open", max_concurrent=None).max_concurrent is None


@pytest.mark.parametrize(
    "declare, message",
    [
        (lambda: Lane("Docs"), "lane 'Docs': name: must be 1 to 63 characters"),
        (lambda: Lane("docs", max_slots=-1), "lane 'docs': max_slots: must be a whole number"),
        (lambda: Lane("docs", max_slots=True), "lane 'docs': max_slots: must be a whole number"),
        (
            lambda: Lane("docs", max_slots="3"),  # type: ignore[arg-type]
            "lane 'docs': max_slots: must be a whole number from 0 to 10000, not '3'",
        ),
        (
            lambda: Lane("docs", max_slots=10**5000),
            (
                "lane 'docs': max_slots: must be a whole number from 0 to 10000, not a value of"
                " type int"
            ),
        ),
        (lambda: Lane("docs", job_types="index"), "lane 'docs': job_types: must be a list"),  # type: ignore[arg-type]
        (
            lambda: Lane("docs", max_slot=3),  # type: ignore[call-arg]
            ("lane 'docs': max_slot: is not a setting of a lane; use one of enabled, job_types,"
            " lease_seconds, max_slots, poll_interval_ms, stale_timeout_minutes;"
            " did you mean max_slots?"),
        ),
        (lambda: Limit("llm", max_concurrent=10_001), "limit 'llm': max_concurrent: must be"),
        (lambda: Limit("llm", rate="20 per s"), "limit 'llm': rate: must be a count per period"),
        (lambda: Limit("llm", rate=20), "limit 'llm': rate: must be a count per period"),  # type: ignore[arg-type]
        (lambda: Limit("llm", rate="0/s"), "limit 'llm': rate: must be a whole number from 1"),
        (lambda: Limit("llm", rate="1/2d"), "limit 'llm': rate: must be from 0.1 to 86400"),
        (lambda: Limit("llm", scope="moon"), "limit 'llm': scope: must be one of cluster"),  # type: ignore[arg-type]
        (
            lambda: Limit("llm", max_concurent=3),  # type: ignore[call-arg]
            ("limit 'llm': max_concurent: is not a setting of a limit; use one of max_concurrent,"
            " rate, scope; did you mean max_concurrent?"),
        ),
        (lambda: Laneway(lanes=[Lane("a"), Lane("a")]), "lanes: names the lane a twice"),
        (
            lambda: Laneway(lanes=[Lane("a", job_types=["t"]), Lane("b", job_types=["t"])]),
            "lanes: puts the job type t into two lanes: a, b",
        ),
        (
            lambda: Laneway(lanes=[Lane("default", job_types=["t"])]),
            "lanes: lane default, job_types: must be empty",
        ),
        (lambda: Laneway(limits=[Limit("a"), Limit("a")]), "limits: names the limit a twice"),
        (
            lambda: Laneway(limits=["llm"]),  # type: ignore[list-item]
            "limits: must be a list of Limit, found str",
        ),
    ],
)  # fmt: skip
def test_wrong_declaration_is_refused_with_field_and_rule(
    declare: Callable[[], object], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        declare()
    # Those of Laneway() begin with the place of the call.
    assert str(caught.value).rpartition("Laneway(): ")[2].startswith(message)


@pytest.mark.parametrize(
    "text, rate",
    [("20/s", (20, 1.0)), ("500/1m", (500, 60.0)), ("3/0.5s", (3, 0.5)), ("6/90", (6, 90.0))],
)
def test_rate_is_a_count_per_period(text: str, rate: tuple[int, float]) -> None:
    assert parse_rate(text) == rate
    assert parse_rate(rate_text(*rate)) == rate


@pytest.mark.parametrize(
    "text", ["", "20", "20/", "/s", "-1/s", "1.5/s", "20/s/s", f"{'9' * 99}/s"]
)
def test_text_that_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="rate: must be a count per period"):
        parse_rate(text)
