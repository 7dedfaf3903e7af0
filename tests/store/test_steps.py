"""Steps: kept once, by the attempt that runs, for every attempt after it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from laneway.store import steps
from tests.store.desk import Desk


def test_what_is_kept_is_read_as_it_was_answered(desk: Desk) -> None:
    claim = desk.running()
    kept = desk.run(steps.keep(claim, "count", '{"zz":1,"b":-0.0,"c":1.50}', 0.25))
    assert (kept.answer, kept.result) == ("kept", '{"b": 0.0, "c": 1.50, "zz": 1}')
    assert desk.run(steps.read(claim)) == {"count": kept.result}
    row = desk.row("steps", claim.seq)
    assert (row["attempt"], row["took_s"]) == (1, 0.25)


def test_keeping_a_step_is_progress(desk: Desk) -> None:
    claim = desk.running()
    assert desk.row("lease", claim.seq)["last_progress_at"] is None
    desk.run(steps.keep(claim, "one", "null", 0.0))
    assert desk.row("lease", claim.seq)["last_progress_at"] is not None


def test_what_was_kept_first_stays(desk: Desk) -> None:
    """An answer may be lost: the same call again is answered alike."""
    claim = desk.running()
    desk.run(steps.keep(claim, "one", "1", 0.0))
    assert desk.run(steps.keep(claim, "one", "2", 0.0)) == ("kept", "1")


def test_a_superseded_attempt_keeps_nothing(desk: Desk) -> None:
    old = desk.running()
    desk.settle(old, "release")
    (new,) = desk.claimed(1)
    assert desk.run(steps.keep(old, "one", "1", 0.0)).answer == "fenced"
    assert desk.run(steps.read(new)) == {}
    assert desk.run(steps.keep(new, "one", "2", 0.0)) == ("kept", "2")


def test_an_ended_job_keeps_nothing(desk: Desk) -> None:
    claim = desk.running()
    desk.settle(claim, "finish", result="1")
    assert desk.run(steps.keep(claim, "one", "1", 0.0)).answer == "fenced"


def test_a_step_done_after_a_cancellation_is_kept_and_told_so(desk: Desk) -> None:
    claim = desk.running()
    desk.cancel(claim.seq)
    assert desk.run(steps.keep(claim, "one", "1", 0.0)) == ("cancel_requested", "1")


def test_a_step_waits_for_nobody(desk: Desk, another: Callable[[], Desk]) -> None:
    claim, holder = desk.running(), another()
    holder.begin()
    holder.do("select from laneway.lease where seq = %s for update", claim.seq)
    assert desk.run(steps.keep(claim, "one", "1", 0.0)).answer == "busy"
    holder.rollback()
    assert desk.run(steps.keep(claim, "one", "1", 0.0)).answer == "kept"


@pytest.mark.parametrize("name", ["", "x" * 201])
def test_the_schema_bounds_the_name(desk: Desk, name: str) -> None:
    claim = desk.running()
    with pytest.raises(psycopg.errors.CheckViolation):
        desk.run(steps.keep(claim, name, "1", 0.0))
