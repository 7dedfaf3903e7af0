"""Steps: stored once, by the running attempt, for all later attempts."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from laneway.store import steps
from tests.support.store_client import StoreClient


def test_stored_response_is_read_unchanged(db: StoreClient) -> None:
    claim = db.running()
    kept = db.run(steps.save(claim, "count", '{"zz":1,"b":-0.0,"c":1.50}', 0.25))
    assert (kept.answer, kept.result) == ("kept", '{"b": 0.0, "c": 1.50, "zz": 1}')
    assert db.run(steps.read(claim)) == {"count": kept.result}
    row = db.row("steps", claim.seq)
    assert (row["attempt"], row["took_s"]) == (1, 0.25)


def test_keeping_a_step_is_progress(db: StoreClient) -> None:
    claim = db.running()
    assert db.row("lease", claim.seq)["last_progress_at"] is None
    db.run(steps.save(claim, "one", "null", 0.0))
    assert db.row("lease", claim.seq)["last_progress_at"] is not None


def test_first_stored_response_stays(db: StoreClient) -> None:
    """A result may be lost: the repeated call returns the same."""
    claim = db.running()
    db.run(steps.save(claim, "one", "1", 0.0))
    assert db.run(steps.save(claim, "one", "2", 0.0)) == ("kept", "1")


def test_superseded_attempt_keeps_nothing(db: StoreClient) -> None:
    old = db.running()
    db.settle(old, "release")
    (new,) = db.claimed(1)
    assert db.run(steps.save(old, "one", "1", 0.0)).answer == "fenced"
    assert db.run(steps.read(new)) == {}
    assert db.run(steps.save(new, "one", "2", 0.0)) == ("kept", "2")


def test_ended_job_keeps_nothing(db: StoreClient) -> None:
    claim = db.running()
    db.settle(claim, "finish", result="1")
    assert db.run(steps.save(claim, "one", "1", 0.0)).answer == "fenced"


def test_step_after_cancel_is_stored_and_reports_cancel(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq)
    assert db.run(steps.save(claim, "one", "1", 0.0)) == ("cancel_requested", "1")


def test_retention_step_waits_for_no_lock(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    claim, holder = db.running(), another()
    holder.begin()
    holder.do("select from laneway.lease where seq = %s for update", claim.seq)
    assert db.run(steps.save(claim, "one", "1", 0.0)).answer == "busy"
    holder.rollback()
    assert db.run(steps.save(claim, "one", "1", 0.0)).answer == "kept"


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_schema_bounds_the_name(db: StoreClient, name: str) -> None:
    claim = db.running()
    with pytest.raises(psycopg.errors.CheckViolation):
        db.run(steps.save(claim, name, "1", 0.0))
