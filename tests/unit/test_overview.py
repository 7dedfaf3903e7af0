"""Laws of the overview: which workers count as lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from laneway.domain.overview import WorkerRow, without_replacement

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def worker(name: str, *, started: int, seen: int, **changed: Any) -> WorkerRow:
    """A worker that started and was last seen at these seconds; dead unless changed."""
    values: dict[str, Any] = {
        "id": uuid4(),
        "name": name,
        "host": "host",
        "pid": 1,
        "code": "0",
        "transport": "database",
        "job_types": ["greet"],
        "lanes": None,
        "concurrency": 4,
        "memory_bytes": None,
        "started_at": NOON + timedelta(seconds=started),
        "seen_at": NOON + timedelta(seconds=seen),
        "drain_requested_at": None,
        "drain_requested_by": None,
        "is_live": False,
        "running": 0,
        "is_leader": False,
        "room": {},
    }
    return WorkerRow(**{**values, **changed})


@pytest.mark.parametrize(
    "changed", [{"name": "b"}, {"job_types": ["other"]}, {"is_live": False, "stopped_at": NOON}]
)
def test_killed_worker_with_a_replacement_is_not_lost(changed: dict[str, Any]) -> None:
    dead = worker("a", started=0, seen=10)
    later = worker(**{"name": "a", "started": 12, "seen": 60, "is_live": True, **changed})
    assert without_replacement([later, dead]) == []


@pytest.mark.parametrize(
    "changed", [{"started": 5}, {"job_types": ["other"]}, {"lanes": ["x"]}, {"concurrency": 0}]
)
def test_another_worker_does_not_replace_a_killed_one(changed: dict[str, Any]) -> None:
    dead = worker("a", started=0, seen=10)
    other = worker(**{"name": "b", "started": 12, "seen": 60, "is_live": True, **changed})
    assert without_replacement([other, dead]) == [dead]


def test_worker_replaces_one_killed_worker() -> None:
    first, second = worker("a", started=0, seen=10), worker("b", started=0, seen=11)
    later = worker("c", started=12, seen=60, is_live=True)
    assert without_replacement([later, second, first]) == [second]


def test_replacement_that_was_killed_too_is_lost_alone() -> None:
    first, second = worker("a", started=0, seen=10), worker("a", started=12, seen=60)
    assert without_replacement([first, second]) == [second]
    third = worker("a", started=62, seen=90, is_live=True)
    assert without_replacement([third, second, first]) == []


def test_killed_server_that_only_led_is_not_a_lost_worker() -> None:
    assert without_replacement([worker("a server", started=0, seen=10, concurrency=0)]) == []
