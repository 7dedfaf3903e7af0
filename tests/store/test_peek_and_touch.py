"""A poll reports along that its worker lives, and never waits for the worker's row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laneway.store import lanes, workers
from laneway.store.workers import Presence, WorkerInfo
from tests.support.store_client import StoreClient


@pytest.fixture
def presence(db: StoreClient) -> Presence:
    info = WorkerInfo(
        id=db.worker,
        name="w",
        host="h",
        pid=1,
        code="1",
        job_types=["t"],
        lanes=None,
        concurrency=4,
    )
    db.run(workers.register(info))
    db.do("update laneway.workers set seen_at = clock_timestamp() - interval '1 hour'")
    return Presence(db.worker, 123, {"kinds": {}})


def seen(db: StoreClient) -> tuple[bool, int | None, object]:
    found: tuple[bool, int | None, object] = db.one(
        "select seen_at > clock_timestamp() - interval '1 minute', memory_bytes, room"
        " from laneway.workers where id = %s",
        db.worker,
    )
    return found


def test_poll_records_presence_and_tells_of_a_drain(db: StoreClient, presence: Presence) -> None:
    seq = db.submit()
    peek = db.run(lanes.peek(["t"], presence=presence))
    assert (peek.due, peek.is_drained) == (["t"], False)
    assert seen(db) == (True, 123, {"kinds": {}})
    db.do(
        "update laneway.workers"
        " set drain_requested_at = clock_timestamp(), drain_requested_by = 'ann'"
    )
    assert db.run(lanes.peek(["t"], presence=presence)).is_drained is True
    assert [claim.seq for claim in db.claimed()] == [seq]


def test_poll_does_not_wait_for_a_locked_worker(
    db: StoreClient, another: Callable[[], StoreClient], presence: Presence
) -> None:
    db.submit()
    other = another()
    with other.conn.transaction():
        other.do("select from laneway.workers where id = %s for update", db.worker)
        peek = db.run(lanes.peek(["t"], presence=presence))
    assert (peek.due, peek.is_drained) == (["t"], None)
    assert seen(db)[0] is False


def test_poll_of_an_unknown_worker_records_nothing(db: StoreClient) -> None:
    assert db.run(lanes.peek([], presence=Presence(db.worker))).is_drained is None
