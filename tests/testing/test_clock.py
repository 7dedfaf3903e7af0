"""The database's clock stands still, moves as the test says, and decides what is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from laneway import Laneway
from laneway.engine.claim.floors import Floors, all_ranges
from laneway.errors import InvalidInput
from laneway.store import lanes, leases
from laneway.testing import clock, run_due
from laneway.testing.scratch_database import ScratchDatabase
from tests.testing.library_app import calls


def test_clock_stands_still_and_starts_at_the_real_time(laneway_app: Laneway) -> None:
    assert clock.now() == clock.now()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.usefixtures("between_schedules")
def test_delayed_job_runs_when_the_clock_reaches_it(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("shelve", {"title": "Emma"}, delay=3600)
    clock.advance(minutes=59, seconds=59)
    assert len(run_due()) == 0
    clock.advance(timedelta(seconds=1))
    assert len(run_due()) == 1


@pytest.mark.usefixtures("between_schedules")
def test_snooze_ends_when_the_clock_reaches_it(laneway_app: Laneway) -> None:
    laneway_app.sync.submit("signal", {"kind": "snooze"})
    run_due()
    assert clock.advance_to_next() == timedelta(seconds=60)
    assert len(run_due().completed) == 1


def test_schedule_fires_once_per_slot(laneway_app: Laneway) -> None:
    clock.set(datetime(2030, 5, 1, 1, 59, tzinfo=UTC))
    run_due()
    calls.clear()
    clock.set(datetime(2030, 5, 2, 1, 59, tzinfo=UTC))
    run_due()
    assert calls.count("count_books") == 1
    run_due()
    assert calls.count("count_books") == 1


def test_schedule_counts_from_the_start_of_the_test(laneway_app: Laneway) -> None:
    clock.advance(days=1)
    run_due()
    assert calls.count("count_books") == 1


def test_check_of_a_schedule_decides(laneway_app: Laneway) -> None:
    clock.advance(days=1)
    run_due()
    assert calls.count("dust") == 1
    calls.append("closed")
    clock.advance(days=1)
    run_due()
    assert calls.count("dust") == 1


def test_approval_expires_with_the_clock(laneway_app: Laneway) -> None:
    job = laneway_app.sync.submit("sell", {"title": "Emma"})
    run_due()
    clock.advance(hours=25)
    run_due()
    assert job.get().status == "cancelled"


def test_times_of_jobs_are_those_of_the_clock(laneway_app: Laneway) -> None:
    now = clock.advance(days=400)
    job = laneway_app.sync.submit("shelve", {"title": "Emma"})
    run_due()
    ended = job.get()
    assert ended.created_at == ended.finished_at == now


def test_clock_goes_on_in_real_time_if_asked(laneway_app: Laneway) -> None:
    now = clock.advance(days=1)
    clock.resume()
    first = clock.now()
    assert now <= first < clock.now()
    assert clock.stop() == clock.now()


def test_own_times_of_the_database_stay_real(
    laneway_app: Laneway, laneway_scratch_database: ScratchDatabase
) -> None:
    clock.advance(days=1)
    (row,) = laneway_scratch_database.execute("select now(), current_timestamp")
    assert all(at < clock.now() - timedelta(hours=23) for at in row)


def test_clock_moves_for_every_connection(laneway_app: Laneway, laneway_database: str) -> None:
    now = clock.advance(days=1)
    with psycopg.connect(laneway_database) as own:
        assert own.execute("select clock_timestamp()").fetchone() == (now,)


def test_wrong_moves_are_refused(laneway_app: Laneway) -> None:
    with pytest.raises(InvalidInput, match="must not be negative"):
        clock.advance(hours=-1)
    with pytest.raises(InvalidInput, match="must have a time zone"):
        clock.set(datetime(2030, 1, 1))  # noqa: DTZ001
    clock.set(datetime(2029, 1, 1, tzinfo=UTC))
    assert clock.set(datetime(2028, 1, 1, tzinfo=UTC)).year == 2028


@pytest.mark.usefixtures("between_schedules")
def test_lapsed_lease_is_reclaimed_after_an_advance(
    laneway_app: Laneway, laneway_scratch_database: ScratchDatabase
) -> None:
    job = laneway_app.sync.submit("shelve", {"title": "Emma"})
    claim_and_die(laneway_scratch_database, "shelve")
    assert len(run_due()) == 0
    clock.advance(seconds=31)
    run_due()
    clock.advance_to_next()
    assert [one.attempt for one in run_due().completed] == [2]
    assert [one.outcome for one in job.get().attempts] == ["lost", "completed"]


def claim_and_die(database: ScratchDatabase, job_type: str) -> None:
    """Claim a job as a worker does that is killed right afterwards."""
    version = database.run(lanes.read()).version
    ranges = all_ranges(Floors(), [(job_type, 1)])
    answer = database.run(leases.claim(uuid4(), "default", version, 1, ranges, [1, 1, 1]))
    assert len(answer.assignments) == 1
