"""Limits for a whole run: a claim never exceeds a limit, and skips jobs that would."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.domain.claim import Claim
from laneway.store import leases
from laneway.store.leases import Verdict
from tests.support.store_client import StoreClient, error, whole

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


def limit(db: StoreClient, name: str = "x", **columns: Any) -> None:
    """Create or change a limit."""
    db.do("insert into laneway.limits (name) values (%s) on conflict do nothing", name)
    for column, value in columns.items():
        db.do(f"update laneway.limits set {column} = %s where name = %s", value, name)


def needs(db: StoreClient, job_type: str, *names: str) -> None:
    """Publish a job type with its limits."""
    db.do(
        "insert into laneway.job_types (name, limits) values (%s, %s)"
        " on conflict (name) do update set limits = excluded.limits",
        job_type,
        list(names),
    )


def sit_at(db: StoreClient, host: str) -> None:
    """Register the client's worker on a host."""
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'w', %s, 1, '0', '{}', 1)",
        db.worker,
        host,
    )


class Taken(NamedTuple):
    state: str
    limited: bool
    wait_s: float | None
    seqs: list[int]


def claim_at(
    db: StoreClient, now: datetime, room: int = 100, types: tuple[str, ...] = ("t",)
) -> Taken:
    """Claim in the default lane at a given time."""
    kinds, groups, fresh, los, floors, his = zip(*(r for t in types for r in whole(t)), strict=True)
    state, limited, wait_s, seqs = db.one(
        "select state, limited, wait_s, seqs from laneway.claim(%s, 'default', %s, %s, %s, %s, %s,"
        " %s, %s, %s, %s, %s)",
        db.worker, db.version(), room, list(kinds), list(groups), list(fresh), list(los),
        list(floors), list(his), [room], now,
    )  # fmt: skip
    return Taken(state, limited, wait_s, seqs or [])


def submitted(db: StoreClient, count: int, job_type: str = "t", **more: Any) -> list[int]:
    return [db.submit(job_type, **more) for _ in range(count)]


def finish(db: StoreClient, claims: list[Claim]) -> None:
    db.run(leases.settle([Verdict(c, "finish") for c in claims]))
    assert db.limits_agree()


# -- how many ----------------------------------------------------------------------------------


def test_no_more_start_than_the_limit_lets_and_one_more_for_each_that_ends(db: StoreClient) -> None:
    limit(db, max_concurrent=2)
    needs(db, "t", "x")
    seqs = submitted(db, 5)
    first, second = db.claimed()
    assert [first.seq, second.seq] == seqs[:2]
    assert db.row("lease", first.seq)["limits"] == ["x"]
    full = db.claim()
    assert (full.state, full.limited, full.assignments) == ("limited", True, [])
    finish(db, [first])
    assert [c.seq for c in db.claimed()] == [seqs[2]]
    assert db.limits_agree()


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "snooze", "release", "cancel"])
def test_every_way_to_end_gives_the_limit_back(db: StoreClient, kind: str) -> None:
    limit(db, max_concurrent=1)
    needs(db, "t", "x")
    claim = db.running()
    db.settle(claim, kind, error=error(), delay_s=3600)
    assert db.one("select running from laneway.limit_usage") == 0
    assert db.settled(claim, kind, error=error())[0].answer in ("accepted", "fenced")
    assert db.one("select running from laneway.limit_usage") == 0


def test_lapse_and_a_burial_give_the_limit_back(db: StoreClient) -> None:
    limit(db, max_concurrent=1)
    needs(db, "t", "x")
    db.running(max_retries=0)
    db.do("update laneway.lease set lease_until = '-infinity'")
    answer = db.run(leases.run_watchdog(db.worker, 10))
    assert (answer.reclaimed, set(answer.job_types or [])) == (1, {"t"})
    db.running(max_retries=0)
    assert db.run(leases.fail_worker(db.worker, "gone", hung=False, culprit=None)) == 1
    assert db.claim().state == "ok"
    assert db.limits_agree()


@pytest.mark.parametrize("most, started", [(0, 0), (None, 4), (3, 3)])
def test_zero_lets_nothing_start_and_null_everything(
    db: StoreClient, most: int | None, started: int
) -> None:
    limit(db, max_concurrent=most)
    needs(db, "t", "x")
    submitted(db, 4)
    assert len(db.claimed()) == started
    assert db.limits_agree()


def test_name_without_a_row_limits_nothing_but_is_counted_until_it_has_one(
    db: StoreClient,
) -> None:
    needs(db, "t", "x")
    submitted(db, 4)
    claims = db.claimed(2)
    assert len(claims) == 2
    limit(db, max_concurrent=2)
    assert db.claim().state == "limited"
    finish(db, claims[:1])
    assert len(db.claimed()) == 1


def test_limit_that_is_deleted_while_held_leaves_the_counters_exact(db: StoreClient) -> None:
    limit(db, max_concurrent=1)
    needs(db, "t", "x")
    claim = db.running()
    db.do("delete from laneway.limits where name = 'x'")
    more = db.running()
    assert db.limits_agree()
    finish(db, [claim, more])
    limit(db, max_concurrent=1)
    assert len(submitted(db, 2)) == 2
    assert len(db.claimed()) == 1


def test_lowering_kills_nothing_and_admits_nothing_until_enough_have_ended(db: StoreClient) -> None:
    limit(db, max_concurrent=3)
    needs(db, "t", "x")
    submitted(db, 5)
    claims = db.claimed()
    assert len(claims) == 3
    limit(db, max_concurrent=1)
    assert db.one("select count(*) from laneway.lease") == 3
    for claim in claims:
        assert db.claim().state == "limited"
        finish(db, [claim])
    assert len(db.claimed()) == 1


def test_running_jobs_release_limits_after_type_changed_them(
    db: StoreClient,
) -> None:
    limit(db, "x", max_concurrent=1)
    limit(db, "y", max_concurrent=1)
    needs(db, "t", "x")
    before = db.running()
    needs(db, "t", "y")
    after = db.running()
    assert db.limits_agree()
    db.submit()
    assert db.claim().state == "limited"
    finish(db, [before])
    assert db.claim().state == "limited", "what ended held another limit"
    needs(db, "t")
    (free,) = db.claimed()
    assert db.row("lease", free.seq)["limits"] is None
    finish(db, [after, free])
    assert db.one("select sum(running) from laneway.limit_usage") == 0


def test_name_that_stands_twice_in_a_type_counts_once(db: StoreClient) -> None:
    limit(db, max_concurrent=1)
    needs(db, "t", "x", "x")
    claim = db.running()
    assert db.row("lease", claim.seq)["limits"] == ["x"]
    finish(db, [claim])


# -- several types and several limits ----------------------------------------------------------


def test_types_that_share_a_limit_share_its_room_in_order(db: StoreClient) -> None:
    limit(db, max_concurrent=3)
    needs(db, "a", "x")
    needs(db, "b", "x")
    order = [db.submit(name) for name in "abab"]
    urgent = db.submit("b", priority=5)
    assert [c.seq for c in db.claimed(100, "ab")] == [urgent, *order[:2]]
    assert db.limits_agree()


def test_type_needs_room_under_each_of_its_limits(db: StoreClient) -> None:
    limit(db, "x", max_concurrent=5)
    limit(db, "y", max_concurrent=2)
    needs(db, "a", "x", "y")
    needs(db, "b", "x")
    both = submitted(db, 4, "a")
    one = submitted(db, 4, "b")
    got: list[Claim] = []
    while claims := db.claimed(100, "ab"):
        got += claims
    assert sorted(c.seq for c in got) == sorted(both[:2] + one[:3])
    assert sorted(db.row("lease", both[0])["limits"]) == ["x", "y"]
    assert db.limits_agree()


def test_job_waiting_for_limit_does_not_block_later_jobs(db: StoreClient) -> None:
    limit(db, max_concurrent=1)
    needs(db, "a", "x")
    waiting = submitted(db, 6, "a", priority=9)
    free = submitted(db, 3, "b")
    assert [c.seq for c in db.claimed(4, "ab")] == [waiting[0], *free]
    free = submitted(db, 3, "b")
    answer = db.claim(4, "ab")
    assert (answer.state, answer.limited) == ("ok", True)
    assert [a.claim.seq for a in answer.assignments] == free


def test_types_without_room_do_not_use_up_the_room_of_their_isolation(db: StoreClient) -> None:
    limit(db, max_concurrent=1)
    for name in "abc":
        needs(db, name, "x")
        submitted(db, 2, name, priority=1)
    free = submitted(db, 2, "d")
    got = [c.seq for c in db.claimed(3, "abcd", caps=[3])]
    assert got[1:] == free


def test_runnable_jobs_are_ordered_by_priority_then_age(db: StoreClient) -> None:
    limit(db, max_concurrent=2)
    needs(db, "a", "x")
    low = submitted(db, 2, "a")
    high = db.submit("a", priority=3)
    plain = db.submit("b", priority=1)
    assert [c.seq for c in db.claimed(100, "ab")] == [high, plain, low[0]]


def test_analyses_need_no_limit(db: StoreClient) -> None:
    limit(db, max_concurrent=0)
    needs(db, "t", "x")
    db.do("update laneway.job_types set has_analysis = true where name = 't'")
    db.submit(concurrency_key="k")
    (claim,) = db.claimed(1, ["\x01t"], lane="analysis")
    lease = db.row("lease", claim.seq)
    assert (lease["limits"], lease["concurrency_key"], lease["max_retries"]) == (None, None, 2)


# -- scopes ------------------------------------------------------------------------------------


def test_limit_per_host_counts_each_host_by_itself(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    limit(db, max_concurrent=2, scope="host")
    needs(db, "t", "x")
    submitted(db, 20)
    here, beside, there = db, another(), another()
    for who, host in ((here, "one"), (beside, "one"), (there, "two")):
        sit_at(who, host)
    assert len(here.claimed(1)) == 1
    assert len(beside.claimed()) == 1
    assert here.claim().state == beside.claim().state == "limited"
    assert len(there.claimed()) == 2
    assert there.claim().state == "limited"
    assert db.limits_agree()


def test_limit_per_process_counts_each_worker_by_itself(
    db: StoreClient, other: StoreClient
) -> None:
    limit(db, max_concurrent=2, scope="process")
    needs(db, "t", "x")
    submitted(db, 20)
    for who in (db, other):
        sit_at(who, "same")
        assert len(who.claimed()) == 2
        assert who.claim().state == "limited"
    assert db.limits_agree()


def test_changed_scope_counts_running_jobs(db: StoreClient, other: StoreClient) -> None:
    limit(db, max_concurrent=2, scope="process")
    needs(db, "t", "x")
    submitted(db, 20)
    sit_at(db, "one")
    sit_at(other, "two")
    mine, theirs = db.claimed(), other.claimed()
    limit(db, scope="cluster")
    finish(db, mine)
    assert db.claim().state == "limited", "two run elsewhere"
    limit(db, scope="host")
    assert len(db.claimed()) == 2
    finish(other, theirs)


# -- wake-ups -------------------------------------------------------------------------------


def test_end_names_the_types_that_may_have_waited_for_its_limit(db: StoreClient) -> None:
    limit(db, max_concurrent=2)
    needs(db, "t", "x")
    needs(db, "other", "x", "y")
    needs(db, "stranger", "y")
    submitted(db, 3)
    claims = db.claimed()
    answers = db.settled(claims[0], "finish")
    assert {(a.answer, a.status) for a in answers} == {("freed", "t"), ("freed", "other")}


def test_finish_under_unexhausted_limit_wakes_no_type(db: StoreClient) -> None:
    limit(db, max_concurrent=10)
    needs(db, "t", "x")
    assert db.settled(db.running(), "finish") == []
    limit(db, max_concurrent=None)
    assert db.settled(db.running(), "finish") == []


# -- locks -------------------------------------------------------------------------------------


def test_two_claims_in_two_lanes_share_a_limit_exactly(db: StoreClient, other: StoreClient) -> None:
    limit(db, max_concurrent=3)
    needs(db, "t", "x")
    needs(db, "polarity", "x")
    db.do("update laneway.worker_lanes set max_slots = null where name = 'interactive'")
    submitted(db, 4)
    submitted(db, 4, "polarity")
    version = db.version()
    other.begin()
    assert len(other.claimed(2, ["polarity"], lane="interactive")) == 2
    claiming = db.later(lambda: db.claim(5, version=version))
    other.await_blocked(db)
    other.commit()
    assert len(claiming.result(20).assignments) == 1
    assert db.limits_agree()


def test_change_of_a_limit_waits_for_claims_under_way(db: StoreClient, other: StoreClient) -> None:
    limit(db, max_concurrent=4)
    needs(db, "t", "x")
    submitted(db, 4)
    db.begin()
    assert len(db.claimed(2)) == 2
    changing = other.later(lambda: limit(other, max_concurrent=2))
    db.await_blocked(other)
    db.commit()
    changing.result(20)
    assert db.claim().state == "limited"


def test_type_without_jobs_keeps_no_claim_waiting_for_its_limit(
    db: StoreClient, other: StoreClient
) -> None:
    limit(db, max_concurrent=5)
    needs(db, "t", "x")
    other_job = db.submit("free")
    other.begin()
    other.do("select from laneway.limits where name = 'x' for update")
    taken = claim_at(db, NOON, types=("t", "free"))
    other.rollback()
    assert taken == Taken("ok", False, None, [other_job])
    limited_job = db.submit("t")
    assert claim_at(db, NOON, types=("t", "free")).seqs == [limited_job]


def test_exhausted_limit_is_refused_without_a_lock(db: StoreClient, other: StoreClient) -> None:
    limit(db, max_concurrent=1)
    needs(db, "t", "x")
    submitted(db, 2)
    claim = db.claimed()[0]
    other.begin()
    other.do("select from laneway.limits for no key update")
    db.do("set lock_timeout = '1ms'")
    assert db.claim().state == "limited"
    finish(db, [claim])
    other.rollback()


# -- rates -------------------------------------------------------------------------------------


def test_rate_limit_bounds_starts_and_reports_next_free_time(db: StoreClient) -> None:
    limit(db, max_concurrent=None)
    db.do("update laneway.limits set rate_count = 3, rate_period_s = 60 where name = 'x'")
    needs(db, "t", "x")
    submitted(db, 10)
    assert len(claim_at(db, NOON).seqs) == 3
    shut = claim_at(db, NOON + timedelta(seconds=1))
    assert (shut.state, shut.seqs) == ("limited", [])
    assert shut.wait_s is not None
    assert 59 <= shut.wait_s <= 63
    just_before = NOON + timedelta(seconds=1 + shut.wait_s - 0.001)
    assert claim_at(db, just_before).seqs == []
    assert len(claim_at(db, just_before + timedelta(seconds=0.001)).seqs) == 3


def test_rate_counts_starts_and_not_jobs_that_run(db: StoreClient) -> None:
    limit(db, max_concurrent=None)
    db.do("update laneway.limits set rate_count = 2, rate_period_s = 60 where name = 'x'")
    needs(db, "t", "x")
    for _ in range(2):
        finish(db, [db.running()])
    db.submit()
    assert db.claim().state == "limited"


def test_rate_per_process_counts_each_worker_by_itself(db: StoreClient, other: StoreClient) -> None:
    limit(db, max_concurrent=None, scope="process")
    db.do("update laneway.limits set rate_count = 2, rate_period_s = 60 where name = 'x'")
    needs(db, "t", "x")
    submitted(db, 10)
    for who in (db, other):
        assert len(claim_at(who, NOON).seqs) == 2
        assert claim_at(who, NOON).state == "limited"


@pytest.mark.parametrize("before, after", [(60.0, 5.0), (5.0, 60.0), (86400.0, 0.1)])
def test_period_that_is_changed_neither_forgets_nor_blocks_for_ever(
    db: StoreClient, before: float, after: float
) -> None:
    limit(db, max_concurrent=None)
    db.do("update laneway.limits set rate_count = 2, rate_period_s = %s where name = 'x'", before)
    needs(db, "t", "x")
    submitted(db, 10)
    assert len(claim_at(db, NOON).seqs) == 2
    db.do("update laneway.limits set rate_period_s = %s where name = 'x'", after)
    later = NOON + timedelta(seconds=2 * after)
    assert len(claim_at(db, later).seqs) == 2
    assert claim_at(db, later).state == "limited"


def test_starts_long_past_are_forgotten(db: StoreClient) -> None:
    limit(db, max_concurrent=None)
    db.do("update laneway.limits set rate_count = 1, rate_period_s = 1 where name = 'x'")
    needs(db, "t", "x")
    submitted(db, 30)
    for n in range(30):
        assert len(claim_at(db, NOON + timedelta(seconds=2 * n)).seqs) == 1
    assert db.one("select count(*) from laneway.limit_starts") <= 3


def test_rate_and_a_maximum_bind_together(db: StoreClient) -> None:
    limit(db, max_concurrent=2)
    db.do("update laneway.limits set rate_count = 3, rate_period_s = 60 where name = 'x'")
    needs(db, "t", "x")
    submitted(db, 9)
    first = claim_at(db, NOON)
    assert len(first.seqs) == 2
    assert claim_at(db, NOON).wait_s is None, "their end is unknown"
    claims = [Claim(seq, db.id_of(seq), 1) for seq in first.seqs]
    finish(db, claims)
    assert len(claim_at(db, NOON).seqs) == 1
    assert claim_at(db, NOON).wait_s is not None


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    count=st.integers(1, 4),
    period=st.sampled_from([0.1, 1.0, 7.3, 60.0]),
    steps=st.lists(st.tuples(st.floats(0, 1.2), st.integers(1, 5)), min_size=1, max_size=25),
)
def test_in_no_period_do_more_start_than_the_rate_allows(
    db: StoreClient, count: int, period: float, steps: list[tuple[float, int]]
) -> None:
    db.begin()
    limit(db, max_concurrent=None)
    db.do(
        "update laneway.limits set rate_count = %s, rate_period_s = %s where name = 'x'",
        count,
        period,
    )
    needs(db, "t", "x")
    submitted(db, 40)
    now, starts = NOON, list[datetime]()
    for step, room in steps:
        now += timedelta(seconds=step * period)
        taken = claim_at(db, now, room)
        starts += [now] * len(taken.seqs)
        recent = [s for s in starts if s >= now - timedelta(seconds=period)]
        assert len(recent) <= count
        if not taken.seqs and taken.wait_s is not None:
            now += timedelta(seconds=taken.wait_s)
            late = claim_at(db, now, 1)
            starts += [now] * len(late.seqs)
            assert late.seqs or len(starts) == 40, "the returned wait was too short"
    db.rollback()


def test_rate_holds_by_the_clock_of_the_server(db: StoreClient) -> None:
    limit(db, max_concurrent=None)
    db.do("update laneway.limits set rate_count = 5, rate_period_s = 0.1 where name = 'x'")
    needs(db, "t", "x")
    submitted(db, 30)
    deadline = time.monotonic() + 60
    while db.one("select count(*) from laneway.lease") < 30:
        db.claim()
        assert time.monotonic() < deadline
    most = db.one(
        "select max(n) from (select count(*) over (order by claimed_at range between"
        " interval '0.1 s' preceding and current row) as n from laneway.lease) x"
    )
    assert most <= 5
