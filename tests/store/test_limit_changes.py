"""A limit tuned while it is in use: nothing that was counted is lost, nothing gets stuck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laneway.domain.limit import Limit
from laneway.store import history, limits
from tests.store.desk import Desk

NOW = "clock_timestamp()"


@pytest.fixture
def desk(dsn: str) -> Iterator[Desk]:
    with Desk(dsn) as desk:
        yield desk
        desk.do("delete from laneway.limits where name = 'rated'")


def start(desk: Desk, period: float, count: int, scope: str = "cluster") -> None:
    """A limit of 10 starts per period, of which some were made now."""
    desk.run(limits.create(Limit("rated", None, 10, period, scope), "me"))
    desk.do(f"select laneway.take_limits(%s, '{{rated}}', %s, {NOW})", desk.worker, [count])


def room(desk: Desk, now: str = NOW) -> int:
    query = f"select room from laneway.limit_room(array['rated'], %s, {now})"
    return int(desk.one(query, desk.worker))


def tune(desk: Desk, **change: object) -> None:
    assert desk.run(limits.tune("rated", change, "me")) is not None


@pytest.mark.parametrize("period", [0.1, 1.0, 59.0, 61.0, 3600.0, 86400.0])
def test_another_period_keeps_what_was_started_and_lets_it_go(desk: Desk, period: float) -> None:
    start(desk, 3600.0, 4)
    tune(desk, rate_count=10, rate_period_s=period)
    held = "select coalesce(sum(started), 0) from laneway.limit_starts where limit_name = 'rated'"
    assert desk.one(held) == 4
    if period > 60:
        assert room(desk) == 6
    assert room(desk, f"{NOW} + make_interval(secs => {period * 34 / 32})") == 10


def test_a_short_period_made_long_is_not_stuck(desk: Desk) -> None:
    start(desk, 1.0, 10)
    tune(desk, rate_count=10, rate_period_s=60.0)
    assert room(desk) == 0
    assert room(desk, f"{NOW} + interval '65 s'") == 10


def test_a_rate_taken_away_and_another_scope_begin_anew(desk: Desk) -> None:
    start(desk, 60.0, 4)
    tune(desk, rate_count=None, rate_period_s=None)
    tune(desk, rate_count=10, rate_period_s=60.0)
    assert room(desk) == 10
    desk.do(f"select laneway.take_limits(%s, '{{rated}}', '{{4}}', {NOW})", desk.worker)
    tune(desk, scope="process")
    assert room(desk) == 10


def test_a_new_count_keeps_the_starts(desk: Desk) -> None:
    start(desk, 60.0, 4)
    tune(desk, rate_count=5, rate_period_s=60.0)
    assert room(desk) == 1


def test_a_deleted_limit_forgets_and_a_rollback_counts_from_then(desk: Desk) -> None:
    start(desk, 60.0, 4)
    desk.do("delete from laneway.limit_usage")
    assert desk.run(limits.delete("rated", "me")).is_gone
    assert desk.one("select count(*) from laneway.limit_starts where limit_name = 'rated'") == 0
    assert desk.run(history.roll_back("limit", "rated", None, "me")).answer == "done"
    assert room(desk) == 10
