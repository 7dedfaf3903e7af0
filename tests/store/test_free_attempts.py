"""Attempts that end without charge: paused for a while, slowed, and stored up to a bound."""

from __future__ import annotations

import pytest

from laneway.domain.claim import Claim
from laneway.domain.handler_signals import Retry, Snooze
from laneway.errors import InvalidInput
from laneway.store import leases
from laneway.store.leases import Verdict
from tests.support.store_client import StoreClient

NO_TIME = (0.0, -1.0, float("nan"), float("-inf"))


def again(db: StoreClient, kind: str, delay_s: float | None, attempt: int = 1) -> float:
    """End an attempt without charge; return the seconds until the job is due again."""
    db.do("delete from laneway.ready")
    claim = db.running()
    db.do("update laneway.lease set attempt = %s where seq = %s", attempt, claim.seq)
    claim = Claim(claim.seq, claim.job_id, attempt)
    db.run(leases.settle([Verdict(claim, kind, delay_s=delay_s)]))
    waits = db.one(
        "select extract(epoch from d.run_at - a.finished_at)::float8 from laneway.attempts a"
        " left join laneway.delayed d using (seq) where a.seq = %s",
        claim.seq,
    )
    return float(waits or 0)


@pytest.mark.parametrize("delay_s", NO_TIME)
def test_snooze_for_no_time_pauses_job(db: StoreClient, delay_s: float) -> None:
    assert again(db, "snooze", delay_s) == 0.1


def test_retry_after_no_number_is_due_at_once(db: StoreClient) -> None:
    for delay_s in NO_TIME:
        assert again(db, "fail", delay_s) == 0


def test_endless_snooze_is_bounded_by_a_century(db: StoreClient) -> None:
    assert again(db, "snooze", float("inf")) == 100 * 366 * 86400


def test_pause_grows_with_uncharged_attempts(db: StoreClient) -> None:
    waits = [again(db, "snooze", 0.0, attempt) for attempt in (1, 10, 11, 40, 1200, 100_000)]
    assert waits == [0.1, 0.1, 0.55, 2, 60, 60]
    waits = [again(db, "release", None, attempt) for attempt in (1, 10, 40, 100_000)]
    assert waits == [0, 0, 2, 60]


def test_wait_that_was_not_stored_is_paused_and_slowed(db: StoreClient) -> None:
    """A faulty worker must not run a handler again and again without a pause."""
    assert again(db, "wait", None) >= 0.1
    assert again(db, "wait", None, 40) >= 2
    assert again(db, "wait", None, 100_000) >= 60


def test_waits_that_came_do_not_slow_a_release(db: StoreClient) -> None:
    claim = db.running()
    db.do(
        "insert into laneway.handler_waits (seq, name, kind, position, workspace, asked_at)"
        " select %s, n::text, 'sleep', n, 'default', clock_timestamp()"
        " from generate_series(1, 400) n",
        claim.seq,
    )
    db.do("update laneway.lease set attempt = 401 where seq = %s", claim.seq)
    db.settle(Claim(claim.seq, claim.job_id, 401), "release")
    assert db.places(claim.seq) == ["ready"]


def test_pause_asked_for_is_kept_where_it_is_longer(db: StoreClient) -> None:
    assert again(db, "snooze", 300, 50) == 300


def test_charged_attempts_are_not_slowed(db: StoreClient) -> None:
    assert again(db, "fail", 0.5, 5000) == 0.5


def test_uncharged_attempts_are_stored_up_to_a_bound(db: StoreClient) -> None:
    claim = db.running()
    db.do(
        "insert into laneway.attempts (seq, attempt, outcome)"
        " select %s, n, case when n %% 50 = 0 then 'failed' else 'snoozed' end"
        " from generate_series(1, 299) n",
        claim.seq,
    )
    db.do(
        "insert into laneway.logs (seq, attempt, line, level, message)"
        " select %s, n, 1, 'info', 'text' from generate_series(1, 299) n",
        claim.seq,
    )
    db.do("update laneway.lease set attempt = 300, retries = 5 where seq = %s", claim.seq)
    late = Claim(claim.seq, claim.job_id, 300)
    db.run(leases.settle([Verdict(late, "snooze", delay_s=1.0)]))
    kept = db.one("select array_agg(attempt order by attempt) from laneway.attempts")
    assert kept == [50, 100, 150, 200, *range(201, 301)]
    logged = db.one("select array_agg(attempt order by attempt) from laneway.logs")
    assert logged == [50, 100, 150, 200, *range(201, 300)]


@pytest.mark.parametrize("seconds", [float("nan"), "a while", None, True])
def test_snooze_and_retry_refuse_invalid_numbers(seconds: object) -> None:
    with pytest.raises(InvalidInput, match="must be a number of seconds"):
        Snooze(seconds)  # type: ignore[arg-type]
    if seconds is not None:
        with pytest.raises(InvalidInput, match="must be a number of seconds"):
            Retry(after=seconds)  # type: ignore[arg-type]


def test_snooze_below_zero_counts_as_zero() -> None:
    assert (Snooze(-1).seconds, Retry(after=-0.5).after) == (0, 0)
