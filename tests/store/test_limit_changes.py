"""A limit tuned while it is in use: no count is lost, no job gets stuck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from laneway.domain.limit import Limit
from laneway.store import history, limits
from tests.support.store_client import StoreClient

NOW = "clock_timestamp()"


@pytest.fixture
def db(dsn: str) -> Iterator[StoreClient]:
    with StoreClient(dsn) as db:
        yield db
        db.do("delete from laneway.limits where name = 'rated'")


def start(db: StoreClient, period: float, count: int, scope: str = "cluster") -> None:
    """A limit of 10 starts per period, with some starts just now."""
    settings: dict[str, object] = {"name": "rated", "max_concurrent": None, "rate_count": 10}
    settings |= {"rate_period_s": period, "scope": scope}
    db.run(limits.create(Limit.of(settings), "me"))
    db.do(f"select laneway.take_limits(%s, '{{rated}}', %s, {NOW})", db.worker, [count])


def room(db: StoreClient, now: str = NOW) -> int:
    query = f"select room from laneway.limit_capacity(array['rated'], %s, {now})"
    return int(db.one(query, db.worker))


def tune(db: StoreClient, **change: object) -> None:
    assert db.run(limits.tune("rated", change, "me")) is not None


@pytest.mark.parametrize("period", [0.1, 1.0, 59.0, 61.0, 3600.0, 86400.0])
def test_changed_period_keeps_recorded_starts_until_they_lapse(
    db: StoreClient, period: float
) -> None:
    start(db, 3600.0, 4)
    tune(db, rate_count=10, rate_period_s=period)
    held = "select coalesce(sum(started), 0) from laneway.limit_starts where limit_name = 'rated'"
    assert db.one(held) == 4
    if period > 60:
        assert room(db) == 6
    assert room(db, f"{NOW} + make_interval(secs => {period * 34 / 32})") == 10


def test_short_period_made_long_is_not_stuck(db: StoreClient) -> None:
    start(db, 1.0, 10)
    tune(db, rate_count=10, rate_period_s=60.0)
    assert room(db) == 0
    assert room(db, f"{NOW} + interval '65 s'") == 10


def test_removed_rate_or_changed_scope_starts_again(db: StoreClient) -> None:
    start(db, 60.0, 4)
    tune(db, rate_count=None, rate_period_s=None)
    tune(db, rate_count=10, rate_period_s=60.0)
    assert room(db) == 10
    db.do(f"select laneway.take_limits(%s, '{{rated}}', '{{4}}', {NOW})", db.worker)
    tune(db, scope="process")
    assert room(db) == 10


def test_new_count_keeps_the_starts(db: StoreClient) -> None:
    start(db, 60.0, 4)
    tune(db, rate_count=5, rate_period_s=60.0)
    assert room(db) == 1


def test_deleted_limit_forgets_and_a_rollback_counts_from_then(db: StoreClient) -> None:
    start(db, 60.0, 4)
    db.do("delete from laneway.limit_usage")
    assert db.run(limits.delete("rated", "me")).is_gone
    assert db.one("select count(*) from laneway.limit_starts where limit_name = 'rated'") == 0
    assert db.run(history.roll_back("limit", "rated", None, "me")).answer == "done"
    assert room(db) == 10
