"""Settling: every outcome ends its attempt in one table, once, and only if that attempt runs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from laneway.domain.claim import Claim
from laneway.domain.duration import YEAR_S
from laneway.domain.job import MAX_RETRIES_RANGE
from laneway.domain.retry import LARGEST_FACTOR, RetryPolicy
from laneway.store import leases
from laneway.store.leases import Verdict, WriteResult
from tests.support.store_client import StoreClient, error

CHARGED = ("fail", "lost", "stalled")
RETURNING = ("release", "snooze")
VERDICTS = ("finish", *CHARGED, "giveup", *RETURNING, "cancel")
KEPT_AS = {
    "fail": "failed",
    "lost": "lost",
    "stalled": "stalled",
    "release": "released",
    "snooze": "snoozed",
}
CASES = list(itertools.product(VERDICTS, (False, True), (False, True)))


def verdict(claim: Claim, kind: str) -> Verdict:
    result = '{"n": 1}' if kind == "finish" else None
    failure = None if kind in ("finish", *RETURNING) else error(message=f"by {kind}")
    delay = 60.0 if kind == "snooze" else None
    return Verdict(claim, kind, result=result, error=failure, delay_s=delay, ran_s=1.5)


def settle(db: StoreClient, kind: str, claim: Claim) -> WriteResult | None:
    answers = db.run(leases.settle([verdict(claim, kind)]))
    return answers[0] if answers else None


def expected_status(kind: str, cancelled: bool, exhausted: bool) -> str:
    if cancelled or kind == "cancel":
        return "cancelled"
    if kind == "finish":
        return "completed"
    if kind in RETURNING or (kind in CHARGED and not exhausted):
        return "approved"
    return "failed"


def begin(db: StoreClient, cancelled: bool, exhausted: bool) -> Claim:
    claim = db.running(max_retries=2, unique_key="k", priority=3)
    if exhausted:
        db.do("update laneway.lease set retries = 2 where seq = %s", claim.seq)
    if cancelled:
        assert db.cancel(claim.seq, "ann", "enough").found_in == "running"
    return claim


@pytest.mark.parametrize("kind, cancelled, exhausted", CASES)
def test_outcome_moves_job_to_its_table(
    db: StoreClient, kind: str, cancelled: bool, exhausted: bool
) -> None:
    claim = begin(db, cancelled, exhausted)
    lease = db.row("lease", claim.seq)
    answer = settle(db, kind, claim)
    status = expected_status(kind, cancelled, exhausted)

    if kind == "finish" and not cancelled:
        assert answer is None
    else:
        expected = "cancel_requested" if cancelled else "accepted"
        assert answer == WriteResult(claim.seq, 1, expected, status)
    assert db.slots_agree()
    assert db.one("select status from laneway.jobs_view where seq = %s", claim.seq) == status
    if status == "approved":
        _check_waiting(db, kind, lease)
    else:
        _check_ended(db, kind, status, cancelled, lease)


def _check_waiting(db: StoreClient, kind: str, lease: dict[str, Any]) -> None:
    seq, charged = lease["seq"], kind in CHARGED
    place = "ready" if kind == "release" else "delayed"
    assert db.places(seq) == [place]
    row = db.row(place, seq)
    assert (row["attempt"], row["retries"], row["rank"]) == (1, lease["retries"] + charged, -3)
    kept = db.row("attempts", seq)
    assert (kept["attempt"], kept["outcome"]) == (1, KEPT_AS[kind])
    assert (kept["lane"], kept["worker_id"]) == ("default", db.worker)
    assert kept["claimed_at"] == lease["claimed_at"]
    assert (kept["error"] or {}).get("message") == (f"by {kind}" if charged else None)
    assert (kept["finished_at"] - kept["started_at"]).total_seconds() == pytest.approx(1.5)
    assert db.one("select seq from laneway.job_keys") == seq, "a live job keeps its key"
    if place == "delayed":
        wait = (row["run_at"] - kept["finished_at"]).total_seconds()
        low, high = (60, 60) if kind == "snooze" else (0.8, 1.2)
        assert low <= wait <= high


def _check_ended(
    db: StoreClient, kind: str, status: str, cancelled: bool, lease: dict[str, Any]
) -> None:
    seq = lease["seq"]
    assert db.places(seq) == ["outcome"]
    row = db.row("outcome", seq)
    assert (row["status"], row["attempt"], row["priority"]) == (status, 1, 3)
    assert row["retries"] == lease["retries"], "an ended job is charged no more"
    assert (row["lane"], row["worker_id"]) == ("default", db.worker)
    assert row["claimed_at"] == lease["claimed_at"]
    assert row["result"] == ({"n": 1} if kind == "finish" else None)
    assert (row["error"] or {}).get("message") == (
        None if kind in ("finish", *RETURNING) else f"by {kind}"
    )
    assert (row["finished_at"] - row["started_at"]).total_seconds() == pytest.approx(1.5)
    assert row["cancel_by"] == ("ann" if cancelled else None)
    reason = "enough" if cancelled else "by cancel" if kind == "cancel" else None
    assert row["cancel_reason"] == reason
    assert (row["cancel_requested_at"] is not None) is cancelled
    assert db.one("select count(*) from laneway.attempts") == 0
    assert db.one("select count(*) from laneway.job_keys") == 0, "an ended job frees its key"


@pytest.mark.parametrize("kind, cancelled, exhausted", CASES)
def test_same_verdict_again_is_answered_as_the_first_and_writes_nothing(
    db: StoreClient, kind: str, cancelled: bool, exhausted: bool
) -> None:
    claim = begin(db, cancelled, exhausted)
    first = settle(db, kind, claim)
    before = _everything(db)
    again = settle(db, kind, claim)
    assert _everything(db) == before
    if kind in ("lost", "stalled"):
        return  # only the watchdog sends these, for leases that it has just read
    if first is None:
        assert again == WriteResult(claim.seq, 1, "accepted", "completed")
    else:
        assert again == first


def _everything(db: StoreClient) -> list[list[tuple[Any, ...]]]:
    tables = ("ready", "delayed", "lease", "outcome", "attempts", "job_keys", "slot_usage")
    return [db.rows(f"select * from laneway.{t} order by 1, 2") for t in tables]


@pytest.mark.parametrize("kind", VERDICTS)
def test_stale_attempt_is_fenced_while_the_next_one_runs(db: StoreClient, kind: str) -> None:
    stale = db.running(unique_key="k")
    db.settle(stale, "lost", error=error("WorkerLost", "worker lost"), delay_s=0)
    (live,) = db.claimed()
    before = _everything(db)
    assert settle(db, kind, stale) == WriteResult(stale.seq, 1, "fenced", None)
    assert _everything(db) == before
    assert settle(db, "finish", live) is None


@pytest.mark.parametrize("kind", VERDICTS)
@pytest.mark.parametrize("end", ["lost", "stalled"])
def test_attempt_taken_back_for_good_is_fenced(db: StoreClient, kind: str, end: str) -> None:
    claim = db.running(max_retries=0)
    failure = error({"lost": "WorkerLost", "stalled": "Stalled"}[end], "worker lost")
    db.settle(claim, end, error=failure)
    assert settle(db, kind, claim) == WriteResult(claim.seq, 1, "fenced", None)
    assert db.row("outcome", claim.seq)["status"] == "failed"


@pytest.mark.parametrize("kind", VERDICTS)
def test_attempt_taken_back_stays_fenced_after_an_operators_retry(
    db: StoreClient, kind: str
) -> None:
    claim = db.running(max_retries=0)
    db.settle(claim, "lost", error=error("WorkerLost", "worker lost"))
    assert db.retry(claim.seq).found_in == "failed"
    assert settle(db, kind, claim) == WriteResult(claim.seq, 1, "fenced", None)


@pytest.mark.parametrize("kind", VERDICTS)
def test_attempt_taken_back_stays_fenced_after_the_waiting_job_is_cancelled(
    db: StoreClient, kind: str
) -> None:
    claim = db.running()
    db.settle(claim, "lost", error=error("WorkerLost", "worker lost"))
    assert db.cancel(claim.seq).found_in == "approved"
    assert settle(db, kind, claim) == WriteResult(claim.seq, 1, "fenced", None)
    assert db.row("outcome", claim.seq)["result"] is None


@pytest.mark.parametrize(
    "first, then", [(a, b) for a, b in itertools.permutations(VERDICTS, 2) if b != "cancel"]
)
def test_second_verdict_on_one_attempt_changes_nothing(
    db: StoreClient, first: str, then: str
) -> None:
    claim = db.running(max_retries=0)
    settle(db, first, claim)
    before = _everything(db)
    answer = settle(db, then, claim)
    assert answer is not None
    assert _everything(db) == before
    if "finish" in (first, then) and "cancel" not in (first, then):
        assert answer.answer == "fenced", "a worker must not take one end for the other"


def test_one_stale_job_leaves_the_others_of_its_batch_accepted(db: StoreClient) -> None:
    for _ in range(20):
        db.submit()
    claims = db.claimed()
    stale = claims[7]
    db.settle(stale, "release")
    batch = [verdict(c, "finish" if i % 2 else "fail") for i, c in enumerate(claims)]
    answers = {a.seq: a for a in db.run(leases.settle(batch))}
    assert answers.pop(stale.seq) == WriteResult(stale.seq, 1, "fenced", None)
    assert {a.answer for a in answers.values()} == {"accepted"}
    assert set(answers) == {c.seq for c in claims[::2]}
    counts = dict(db.rows("select status, count(*) from laneway.jobs_view group by 1"))
    assert counts == {"completed": 9, "approved": 11}
    assert db.slots_agree()


def test_attempt_named_twice_in_one_batch_ends_once_by_the_first_verdict(
    db: StoreClient,
) -> None:
    claim = db.running()
    answers = db.run(leases.settle([verdict(claim, "finish"), verdict(claim, "fail")]))
    assert answers == []
    assert db.row("outcome", claim.seq)["status"] == "completed"
    assert db.places(claim.seq) == ["outcome"]
    assert db.slots_agree()


def test_stale_and_running_attempt_in_one_batch_get_own_results(
    db: StoreClient,
) -> None:
    stale = db.running()
    db.settle(stale, "lost", error=error("WorkerLost"), delay_s=0)
    (live,) = db.claimed()
    answers = db.run(leases.settle([verdict(stale, "finish"), verdict(live, "finish")]))
    assert answers == [WriteResult(stale.seq, 1, "fenced", None)]
    assert db.row("outcome", live.seq)["attempt"] == 2


def test_attempt_that_never_was_is_fenced(db: StoreClient) -> None:
    claim = db.running()
    for wrong in (claim._replace(attempt=2), claim._replace(attempt=0), claim._replace(seq=10**9)):
        answer = settle(db, "finish", wrong)
        assert answer is not None
        assert answer.answer == "fenced"
    assert db.places(claim.seq) == ["lease"]


def test_budget_allows_one_start_more_than_max_retries(db: StoreClient) -> None:
    seq = db.submit(max_retries=3)
    for start in range(1, 5):
        (claim,) = db.claimed()
        assert (claim.seq, claim.attempt) == (seq, start)
        db.settle(claim, "fail", error=error(message=f"no. {start}"), delay_s=0)
    outcome = db.row("outcome", seq)
    assert (outcome["status"], outcome["attempt"], outcome["retries"]) == ("failed", 4, 3)
    assert outcome["error"]["message"] == "no. 4"
    assert db.rows("select attempt, error ->> 'message' from laneway.attempts order by 1") == [
        (1, "no. 1"),
        (2, "no. 2"),
        (3, "no. 3"),
    ]


def test_release_and_snooze_never_spend_the_budget(db: StoreClient) -> None:
    seq = db.submit(max_retries=0)
    for start in range(1, 8):
        (claim,) = db.claimed()
        assert claim.attempt == start
        db.settle(claim, "release" if start % 2 else "snooze", delay_s=0)
        db.make_due()
    assert db.row("ready", seq)["retries"] == 0


def test_retry_delay_doubles_from_1_s_to_60_s_with_jitter(
    db: StoreClient,
) -> None:
    for n, nominal in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (1000, 60)]:
        waits = [
            s.total_seconds()
            for (s,) in db.rows(
                "select laneway.retry_delay('unpublished', %s) from generate_series(1, 200)",
                n,
            )
        ]
        assert nominal * 0.8 <= min(waits) < nominal < max(waits) <= nominal * 1.2


def test_job_type_may_set_its_own_wait(db: StoreClient) -> None:
    db.do(
        "insert into laneway.job_types"
        " (name, retry_base_s, retry_cap_s, retry_factor, retry_jitter)"
        " values ('own', 5, 30, 3, 0)"
    )
    waits = [
        db.one("select laneway.retry_delay('own', %s)", n).total_seconds() for n in range(1, 5)
    ]
    assert waits == [5, 15, 30, 30]


POLICIES = [
    RetryPolicy(),
    RetryPolicy(base=0.05, cap=0.05, factor=1),
    RetryPolicy(base=0, factor=LARGEST_FACTOR),
    RetryPolicy(base=1, cap=YEAR_S, factor=1.01),
    RetryPolicy(base=7, cap=YEAR_S, factor=1.5),
    RetryPolicy(base=YEAR_S, cap=YEAR_S, factor=LARGEST_FACTOR),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_database_and_python_wait_equally_long_before_a_retry(
    db: StoreClient, policy: RetryPolicy
) -> None:
    db.do(
        "insert into laneway.job_types"
        " (name, retry_base_s, retry_cap_s, retry_factor, retry_jitter)"
        " values ('own', %s, %s, %s, 0)",
        policy.base,
        policy.cap,
        policy.factor,
    )
    numbers = [*range(1, 80), 1000, MAX_RETRIES_RANGE[1]]
    found = db.rows(
        "select extract(epoch from laneway.retry_delay('own', n))::float8"
        "  from unnest(%s::int[]) with ordinality u(n, i) order by u.i",
        numbers,
    )
    expected = [policy.delay(n, rand=0.5) for n in numbers]
    assert [wait for (wait,) in found] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_larger_factor_of_an_earlier_release_does_not_overflow(db: StoreClient) -> None:
    db.do(
        "insert into laneway.job_types (name, retry_cap_s, retry_factor, retry_jitter)"
        " values ('own', 90, 1000000, 0)"
    )
    assert db.one("select laneway.retry_delay('own', 1000)").total_seconds() == 90


def test_unpublished_type_has_the_default_retry_policy(db: StoreClient) -> None:
    default = db.rows(
        "select column_name, column_default::float8 from information_schema.columns"
        " where table_schema = 'laneway' and table_name = 'job_types'"
        " and column_name like 'retry_%'"
    )
    policy = RetryPolicy()
    assert dict(default) == {
        "retry_base_s": policy.base,
        "retry_cap_s": policy.cap,
        "retry_factor": policy.factor,
        "retry_jitter": policy.jitter,
    }


def test_batch_over_two_lanes_returns_each_slot_to_its_lane(db: StoreClient) -> None:
    mine, theirs = db.running(), db.running("polarity")
    assert {r[0] for r in db.rows("select lane from laneway.slot_usage")} == {
        "default",
        "interactive",
    }
    db.run(leases.settle([verdict(mine, "finish"), verdict(theirs, "finish")]))
    assert db.rows("select distinct running from laneway.slot_usage") == [(0,)]


def test_two_settles_of_the_same_jobs_in_opposite_order_never_deadlock(
    db: StoreClient, other: StoreClient
) -> None:
    for _ in range(40):
        db.submit()
    claims = db.claimed()
    other.begin()
    other.run(leases.settle([verdict(c, "finish") for c in reversed(claims)]))
    mine = leases.settle([verdict(c, "finish") for c in claims])
    assert {a.answer for a in db.run(mine)} == {"busy"}
    other.commit()
    assert {a.answer for a in db.run(mine)} == {"accepted"}
    assert db.one("select count(*) from laneway.outcome") == 40


def test_settle_meets_a_cancel_that_is_under_way_and_obeys_it(
    db: StoreClient, other: StoreClient
) -> None:
    claim = db.running()
    other.begin()
    other.cancel(claim.seq, "ann")
    assert settle(db, "finish", claim) == WriteResult(claim.seq, 1, "busy", None)
    other.commit()
    assert settle(db, "finish", claim) == WriteResult(claim.seq, 1, "cancel_requested", "cancelled")
    assert db.row("outcome", claim.seq)["result"] == {"n": 1}
    assert db.row("outcome", claim.seq)["cancel_by"] == "ann"
