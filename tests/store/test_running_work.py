"""Heartbeats and reports: fenced, never waiting, never in deadlock with a settle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from laneway.domain.claim import Claim
from laneway.store import jobs, leases
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from tests.support.store_client import StoreClient, error


def test_heartbeat_moves_the_lease_on_by_its_length_and_answers_nothing(db: StoreClient) -> None:
    claim = db.running()
    before = db.row("lease", claim.seq)
    db.do("update laneway.lease set lease_until = lease_until - interval '20 s'")
    assert db.heartbeat([claim]) == []
    after = db.row("lease", claim.seq)
    assert after["lease_until"] > before["lease_until"]
    left = db.one("select lease_until - clock_timestamp() from laneway.lease")
    assert timedelta(seconds=29) < left <= timedelta(seconds=30)
    assert after["last_progress_at"] is None, "a heartbeat does not count as progress"


def test_every_write_about_an_attempt_that_does_not_run_is_fenced(db: StoreClient) -> None:
    stale = db.running()
    db.settle(stale, "lost", error=error("WorkerLost"), delay_s=0)
    (live,) = db.claimed()
    never = live._replace(seq=10**9)
    before = db.row("lease", live.seq)
    for wrong in (stale, never):
        fenced = [WriteResult(wrong.seq, wrong.attempt, "fenced")]
        assert db.heartbeat([wrong]) == fenced
        assert db.report([Report(wrong, done=1, checkpoint="{}")]) == fenced
        assert db.report([], [LogEntry(wrong, 1, "info", "late", 0)]) == fenced
    assert db.row("lease", live.seq) == before
    assert db.one("select count(*) from laneway.progress") == 0
    assert db.one("select count(*) from laneway.logs") == 0


def test_stale_attempt_gains_nothing_from_the_running_one_in_the_same_batch(
    db: StoreClient,
) -> None:
    stale = db.running()
    db.settle(stale, "lost", error=error("WorkerLost"), delay_s=0)
    (live,) = db.claimed()
    fenced = [WriteResult(stale.seq, 1, "fenced")]
    assert db.heartbeat([stale, live]) == fenced
    assert db.heartbeat([live, stale]) == fenced
    assert db.report([Report(stale, message="old")], [LogEntry(live, 1, "info", "m", 0)]) == fenced
    assert db.one("select count(*) from laneway.progress") == 0
    assert db.row("lease", live.seq)["last_progress_at"] is None
    reports = [Report(stale, message="old"), Report(live, message="new")]
    assert db.report(reports, [LogEntry(stale, 1, "info", "old", 0)]) == fenced
    assert db.rows("select attempt, message from laneway.progress") == [(2, "new")]
    assert db.rows("select attempt, message from laneway.logs") == [(2, "m")]


def test_one_stale_job_leaves_the_others_of_its_batch_renewed(db: StoreClient) -> None:
    for _ in range(30):
        db.submit()
    claims = db.claimed()
    db.settle(claims[3], "finish")
    db.do("update laneway.lease set lease_until = clock_timestamp()")
    assert db.heartbeat(claims) == [WriteResult(claims[3].seq, 1, "fenced")]
    renewed = "select count(*) from laneway.lease where lease_until > clock_timestamp()"
    assert db.one(renewed) == 29


def test_worker_learns_of_a_cancel_by_its_next_heartbeat_or_report(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq)
    asked = [WriteResult(claim.seq, 1, "cancel_requested")]
    db.do("update laneway.lease set lease_until = clock_timestamp()")
    assert db.heartbeat([claim]) == asked
    assert db.one("select lease_until > clock_timestamp() from laneway.lease"), "still renewed"
    assert db.report([Report(claim, message="nearly", checkpoint="[1]")]) == asked
    assert db.report([], [LogEntry(claim, 1, "info", "stopping", 0)]) == asked
    assert db.row("progress", claim.seq)["checkpoint"] == [1], "what it says is kept"


def test_progress_keeps_unnamed_fields_and_updates_progress_time(
    db: StoreClient,
) -> None:
    claim = db.running()
    db.report([Report(claim, stage="read", done=1, total=4, message="m", checkpoint="[1]")])
    first = db.row("lease", claim.seq)["last_progress_at"]
    assert first is not None
    db.report([Report(claim, done=2)])
    row = db.row("progress", claim.seq)
    kept = {k: row[k] for k in ("stage", "done", "total", "message", "checkpoint", "attempt")}
    assert kept == {
        "stage": "read",
        "done": 2,
        "total": 4,
        "message": "m",
        "checkpoint": [1],
        "attempt": 1,
    }
    assert db.row("lease", claim.seq)["last_progress_at"] > first
    job = db.run(jobs.get(claim.job_id))
    assert job is not None
    assert job.progress is not None
    assert (job.progress.percent, job.progress.stage) == (50.0, "read")
    assert job.checkpoint == [1]


def test_log_lines_are_stored_once_in_order_and_are_not_progress(db: StoreClient) -> None:
    claim = db.running()
    lines = [LogEntry(claim, n, "info", f"line {n}", 5.0) for n in (2, 1, 3)]
    assert db.report([], lines) == []
    assert db.report([], lines) == []
    assert db.row("lease", claim.seq)["last_progress_at"] is None
    (attempt,) = db.run(jobs.get_attempts(claim.job_id))
    assert [line.message for line in attempt.log] == ["line 1", "line 2", "line 3"]
    assert db.one("select clock_timestamp() - min(at) >= interval '5 s' from laneway.logs")


def test_of_many_log_lines_the_newest_are_read_and_all_are_counted(db: StoreClient) -> None:
    claim = db.running()
    seen: dict[int, int] = {}
    for attempt in range(1, 8):
        many = 150 + 50 * (attempt % 3)
        seen[attempt] = many
        db.report([], [LogEntry(claim, n, "info", f"{n}", 0.0) for n in range(1, many + 1)])
        db.settle(claim, "release")
        (claim,) = db.claimed(1)
    attempts = db.run(jobs.get_attempts(claim.job_id))
    assert [one.log_lines for one in attempts] == [*seen.values(), 0]
    assert [len(one.log) for one in attempts] == [0, 100, 150, 200, 200, 150, 200, 0]
    assert [line.message for line in attempts[6].log] == [str(n) for n in range(1, 201)]
    assert [line.message for line in attempts[4].log] == [str(n) for n in range(51, 251)]


def test_checkpoint_and_progress_outlive_the_attempt(db: StoreClient) -> None:
    claim = db.running()
    db.report([Report(claim, done=3, checkpoint='{"at": 3}')])
    db.settle(claim, "cancel")
    job = db.run(jobs.get(claim.job_id))
    assert job is not None
    assert job.checkpoint == {"at": 3}
    db.retry(claim.seq)
    (again,) = db.claim().assignments
    assert (again.claim.attempt, again.checkpoint) == (2, '{"at": 3}')


@pytest.mark.parametrize("text", ["ünï ☃ 𝄞", "'; drop table x; --", "\\u0000 \x01\x7f", "%s %(a)s"])
def test_any_text_without_nul_is_kept_as_it_is(db: StoreClient, text: str) -> None:
    claim = db.running()
    db.report([Report(claim, stage=text, message=text)], [LogEntry(claim, 1, "info", text, 0)])
    db.settle(claim, "fail", error=error(text, text))
    assert db.row("progress", claim.seq)["message"] == text
    (attempt,) = db.run(jobs.get_attempts(claim.job_id))
    assert attempt.error is not None
    assert (attempt.error.type, attempt.error.message, attempt.log[0].message) == (text,) * 3


def test_lease_that_another_transaction_holds_is_busy_not_waited_for(
    db: StoreClient, other: StoreClient
) -> None:
    held, free = db.running(), db.running()
    other.begin()
    other.do("select from laneway.lease where seq = %s for update", held.seq)
    db.do("set lock_timeout = '1ms'")
    busy = [WriteResult(held.seq, 1, "busy")]
    assert db.heartbeat([held, free]) == busy
    assert db.report([Report(held, done=1), Report(free, done=1)]) == busy
    assert db.rows("select seq from laneway.progress") == [(free.seq,)]
    other.rollback()
    assert db.heartbeat([held, free]) == []


def test_settle_that_has_not_committed_makes_its_jobs_busy(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    other.begin()
    other.settle(claim, "finish")
    db.do("set lock_timeout = '1ms'")
    assert db.heartbeat([claim]) == [WriteResult(claim.seq, 1, "busy")]
    other.commit()
    assert db.heartbeat([claim]) == [WriteResult(claim.seq, 1, "fenced")]


def test_heartbeats_reports_and_settles_of_the_same_jobs_never_deadlock(
    db: StoreClient, other: StoreClient, another: Callable[[], StoreClient]
) -> None:
    """Three connections, 500 jobs, opposite orders: a deadlock would be raised in one of them."""
    third = another()
    for one in (db, other, third):
        one.do("set deadlock_timeout = '10ms'")
    for _ in range(6):
        db.do(
            "with new as (insert into laneway.jobs (id, job_type, payload)"
            " select gen_random_uuid(), 't', '{}' from generate_series(1, 500) returning seq)"
            " insert into laneway.ready (seq, job_type, rank) select seq, 't', 0 from new"
        )
        claims = db.claimed(500)
        assert len(claims) == 500
        start, done = threading.Barrier(3), threading.Event()
        beating = other.later(partial(_beat, other, claims[::-1], start, done))
        failing = third.later(partial(_end, third, claims[::-1], "fail", start))
        answers = _end(db, claims, "finish", start)
        theirs = failing.result(20)
        done.set()
        beating.result(20)
        refused = sum(a.answer == "fenced" for a in (*answers, *theirs))
        assert refused == 500, "each job ended by exactly one of the two"
        db.do("delete from laneway.ready")
    assert db.slots_agree()


def _beat(
    db: StoreClient, claims: list[Claim], start: threading.Barrier, done: threading.Event
) -> None:
    start.wait()
    while not done.is_set():
        db.heartbeat(claims)
        db.report([Report(c, done=1) for c in claims])


def _end(
    db: StoreClient, claims: list[Claim], kind: str, start: threading.Barrier
) -> list[WriteResult]:
    start.wait()
    answers: list[WriteResult] = []
    while claims:
        settled = db.run(leases.settle([Verdict(c, kind, delay_s=0) for c in claims]))
        busy = {a.seq for a in settled if a.answer == "busy"}
        answers += [a for a in settled if a.seq not in busy]
        claims = [c for c in claims if c.seq in busy]
    return answers
