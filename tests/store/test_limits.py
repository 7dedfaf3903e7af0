"""Limits for a whole run: a claim never starts more than a limit lets, and passes others by."""

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
from tests.store.desk import Desk, error, whole

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


def limit(desk: Desk, name: str = "x", **columns: Any) -> None:
    """Creates a limit, or makes it what is said."""
    desk.do("insert into laneway.limits (name) values (%s) on conflict do nothing", name)
    for column, value in columns.items():
        desk.do(f"update laneway.limits set {column} = %s where name = %s", value, name)


def needs(desk: Desk, job_type: str, *names: str) -> None:
    """Publishes a job type with its limits."""
    desk.do(
        "insert into laneway.job_types (name, limits) values (%s, %s)"
        " on conflict (name) do update set limits = excluded.limits",
        job_type,
        list(names),
    )


def sit_at(desk: Desk, host: str) -> None:
    """Makes the desk's worker one of a host."""
    desk.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'w', %s, 1, '0', '{}', 1)",
        desk.worker,
        host,
    )


class Taken(NamedTuple):
    state: str
    limited: bool
    wait_s: float | None
    seqs: list[int]


def claim_at(desk: Desk, now: datetime, room: int = 100, types: tuple[str, ...] = ("t",)) -> Taken:
    """A claim in the default lane at a time of our own."""
    kinds, groups, fresh, los, floors, his = zip(*(r for t in types for r in whole(t)), strict=True)
    state, limited, wait_s, seqs = desk.one(
        "select state, limited, wait_s, seqs from laneway.claim(%s, 'default', %s, %s, %s, %s, %s,"
        " %s, %s, %s, %s, %s)",
        desk.worker, desk.version(), room, list(kinds), list(groups), list(fresh), list(los),
        list(floors), list(his), [room], now,
    )  # fmt: skip
    return Taken(state, limited, wait_s, seqs or [])


def submitted(desk: Desk, count: int, job_type: str = "t", **more: Any) -> list[int]:
    return [desk.submit(job_type, **more) for _ in range(count)]


def finish(desk: Desk, claims: list[Claim]) -> None:
    desk.run(leases.settle([Verdict(c, "finish") for c in claims]))
    assert desk.limits_agree()


# -- how many ----------------------------------------------------------------------------------


def test_no_more_start_than_the_limit_lets_and_one_more_for_each_that_ends(desk: Desk) -> None:
    limit(desk, max_concurrent=2)
    needs(desk, "t", "x")
    seqs = submitted(desk, 5)
    first, second = desk.claimed()
    assert [first.seq, second.seq] == seqs[:2]
    assert desk.row("lease", first.seq)["limits"] == ["x"]
    full = desk.claim()
    assert (full.state, full.limited, full.assignments) == ("limited", True, [])
    finish(desk, [first])
    assert [c.seq for c in desk.claimed()] == [seqs[2]]
    assert desk.limits_agree()


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "snooze", "release", "cancel"])
def test_every_way_to_end_gives_the_limit_back(desk: Desk, kind: str) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "t", "x")
    claim = desk.running()
    desk.settle(claim, kind, error=error(), delay_s=3600)
    assert desk.one("select running from laneway.limit_usage") == 0
    assert desk.settled(claim, kind, error=error())[0].answer in ("accepted", "fenced")
    assert desk.one("select running from laneway.limit_usage") == 0


def test_a_lapse_and_a_burial_give_the_limit_back(desk: Desk) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "t", "x")
    desk.running(max_retries=0)
    desk.do("update laneway.lease set lease_until = '-infinity'")
    answer = desk.run(leases.watch(desk.worker, 10))
    assert (answer.reclaimed, set(answer.job_types or [])) == (1, {"t"})
    desk.running(max_retries=0)
    assert desk.run(leases.fail_worker(desk.worker, "gone", hung=False, culprit=None)) == 1
    assert desk.claim().state == "ok"
    assert desk.limits_agree()


@pytest.mark.parametrize("most, started", [(0, 0), (None, 4), (3, 3)])
def test_zero_lets_nothing_start_and_null_everything(
    desk: Desk, most: int | None, started: int
) -> None:
    limit(desk, max_concurrent=most)
    needs(desk, "t", "x")
    submitted(desk, 4)
    assert len(desk.claimed()) == started
    assert desk.limits_agree()


def test_a_name_without_a_row_limits_nothing_but_is_counted_until_it_has_one(desk: Desk) -> None:
    needs(desk, "t", "x")
    submitted(desk, 4)
    claims = desk.claimed(2)
    assert len(claims) == 2
    limit(desk, max_concurrent=2)
    assert desk.claim().state == "limited"
    finish(desk, claims[:1])
    assert len(desk.claimed()) == 1


def test_a_limit_that_is_deleted_while_held_leaves_the_counters_exact(desk: Desk) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "t", "x")
    claim = desk.running()
    desk.do("delete from laneway.limits where name = 'x'")
    more = desk.running()
    assert desk.limits_agree()
    finish(desk, [claim, more])
    limit(desk, max_concurrent=1)
    assert len(submitted(desk, 2)) == 2
    assert len(desk.claimed()) == 1


def test_lowering_kills_nothing_and_admits_nothing_until_enough_have_ended(desk: Desk) -> None:
    limit(desk, max_concurrent=3)
    needs(desk, "t", "x")
    submitted(desk, 5)
    claims = desk.claimed()
    assert len(claims) == 3
    limit(desk, max_concurrent=1)
    assert desk.one("select count(*) from laneway.lease") == 3
    for claim in claims:
        assert desk.claim().state == "limited"
        finish(desk, [claim])
    assert len(desk.claimed()) == 1


def test_a_type_that_changes_its_limits_while_jobs_run_gives_back_what_they_hold(
    desk: Desk,
) -> None:
    limit(desk, "x", max_concurrent=1)
    limit(desk, "y", max_concurrent=1)
    needs(desk, "t", "x")
    before = desk.running()
    needs(desk, "t", "y")
    after = desk.running()
    assert desk.limits_agree()
    desk.submit()
    assert desk.claim().state == "limited"
    finish(desk, [before])
    assert desk.claim().state == "limited", "what ended held another limit"
    needs(desk, "t")
    (free,) = desk.claimed()
    assert desk.row("lease", free.seq)["limits"] is None
    finish(desk, [after, free])
    assert desk.one("select sum(running) from laneway.limit_usage") == 0


def test_a_name_that_stands_twice_in_a_type_counts_once(desk: Desk) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "t", "x", "x")
    claim = desk.running()
    assert desk.row("lease", claim.seq)["limits"] == ["x"]
    finish(desk, [claim])


# -- several types and several limits ----------------------------------------------------------


def test_types_that_share_a_limit_share_its_room_in_order(desk: Desk) -> None:
    limit(desk, max_concurrent=3)
    needs(desk, "a", "x")
    needs(desk, "b", "x")
    order = [desk.submit(name) for name in "abab"]
    urgent = desk.submit("b", priority=5)
    assert [c.seq for c in desk.claimed(100, "ab")] == [urgent, *order[:2]]
    assert desk.limits_agree()


def test_a_type_needs_room_under_each_of_its_limits(desk: Desk) -> None:
    limit(desk, "x", max_concurrent=5)
    limit(desk, "y", max_concurrent=2)
    needs(desk, "a", "x", "y")
    needs(desk, "b", "x")
    both = submitted(desk, 4, "a")
    one = submitted(desk, 4, "b")
    got: list[Claim] = []
    while claims := desk.claimed(100, "ab"):
        got += claims
    assert sorted(c.seq for c in got) == sorted(both[:2] + one[:3])
    assert sorted(desk.row("lease", both[0])["limits"]) == ["x", "y"]
    assert desk.limits_agree()


def test_a_job_that_waits_for_a_limit_blocks_none_behind_it(desk: Desk) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "a", "x")
    waiting = submitted(desk, 6, "a", priority=9)
    free = submitted(desk, 3, "b")
    assert [c.seq for c in desk.claimed(4, "ab")] == [waiting[0], *free]
    free = submitted(desk, 3, "b")
    answer = desk.claim(4, "ab")
    assert (answer.state, answer.limited) == ("ok", True)
    assert [a.claim.seq for a in answer.assignments] == free


def test_types_without_room_do_not_use_up_the_room_of_their_isolation(desk: Desk) -> None:
    limit(desk, max_concurrent=1)
    for name in "abc":
        needs(desk, name, "x")
        submitted(desk, 2, name, priority=1)
    free = submitted(desk, 2, "d")
    got = [c.seq for c in desk.claimed(3, "abcd", caps=[3])]
    assert got[1:] == free


def test_order_is_priority_then_first_in_among_what_may_run(desk: Desk) -> None:
    limit(desk, max_concurrent=2)
    needs(desk, "a", "x")
    low = submitted(desk, 2, "a")
    high = desk.submit("a", priority=3)
    plain = desk.submit("b", priority=1)
    assert [c.seq for c in desk.claimed(100, "ab")] == [high, plain, low[0]]


def test_analyses_need_no_limit(desk: Desk) -> None:
    limit(desk, max_concurrent=0)
    needs(desk, "t", "x")
    desk.do("update laneway.job_types set has_analysis = true where name = 't'")
    desk.submit(concurrency_key="k")
    (claim,) = desk.claimed(1, ["\x01t"], lane="analysis")
    lease = desk.row("lease", claim.seq)
    assert (lease["limits"], lease["concurrency_key"], lease["max_retries"]) == (None, None, 2)


# -- scopes ------------------------------------------------------------------------------------


def test_a_limit_per_host_counts_each_host_by_itself(
    desk: Desk, another: Callable[[], Desk]
) -> None:
    limit(desk, max_concurrent=2, scope="host")
    needs(desk, "t", "x")
    submitted(desk, 20)
    here, beside, there = desk, another(), another()
    for who, host in ((here, "one"), (beside, "one"), (there, "two")):
        sit_at(who, host)
    assert len(here.claimed(1)) == 1
    assert len(beside.claimed()) == 1
    assert here.claim().state == beside.claim().state == "limited"
    assert len(there.claimed()) == 2
    assert there.claim().state == "limited"
    assert desk.limits_agree()


def test_a_limit_per_process_counts_each_worker_by_itself(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=2, scope="process")
    needs(desk, "t", "x")
    submitted(desk, 20)
    for who in (desk, other):
        sit_at(who, "same")
        assert len(who.claimed()) == 2
        assert who.claim().state == "limited"
    assert desk.limits_agree()


def test_a_scope_that_is_changed_counts_what_runs_already(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=2, scope="process")
    needs(desk, "t", "x")
    submitted(desk, 20)
    sit_at(desk, "one")
    sit_at(other, "two")
    mine, theirs = desk.claimed(), other.claimed()
    limit(desk, scope="cluster")
    finish(desk, mine)
    assert desk.claim().state == "limited", "two run elsewhere"
    limit(desk, scope="host")
    assert len(desk.claimed()) == 2
    finish(other, theirs)


# -- who is told -------------------------------------------------------------------------------


def test_an_end_names_the_types_that_may_have_waited_for_its_limit(desk: Desk) -> None:
    limit(desk, max_concurrent=2)
    needs(desk, "t", "x")
    needs(desk, "other", "x", "y")
    needs(desk, "stranger", "y")
    submitted(desk, 3)
    claims = desk.claimed()
    told = desk.settled(claims[0], "finish")
    assert {(a.answer, a.status) for a in told} == {("freed", "t"), ("freed", "other")}


def test_an_end_under_a_limit_far_from_its_maximum_names_nobody(desk: Desk) -> None:
    limit(desk, max_concurrent=10)
    needs(desk, "t", "x")
    assert desk.settled(desk.running(), "finish") == []
    limit(desk, max_concurrent=None)
    assert desk.settled(desk.running(), "finish") == []


# -- locks -------------------------------------------------------------------------------------


def test_two_claims_in_two_lanes_share_a_limit_exactly(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=3)
    needs(desk, "t", "x")
    needs(desk, "polarity", "x")
    desk.do("update laneway.worker_lanes set max_slots = null where name = 'interactive'")
    submitted(desk, 4)
    submitted(desk, 4, "polarity")
    version = desk.version()
    other.begin()
    assert len(other.claimed(2, ["polarity"], lane="interactive")) == 2
    claiming = desk.later(lambda: desk.claim(5, version=version))
    other.await_blocked(desk)
    other.commit()
    assert len(claiming.result(20).assignments) == 1
    assert desk.limits_agree()


def test_a_change_of_a_limit_waits_for_claims_under_way(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=4)
    needs(desk, "t", "x")
    submitted(desk, 4)
    desk.begin()
    assert len(desk.claimed(2)) == 2
    changing = other.later(lambda: limit(other, max_concurrent=2))
    desk.await_blocked(other)
    desk.commit()
    changing.result(20)
    assert desk.claim().state == "limited"


def test_a_type_without_jobs_keeps_no_claim_waiting_for_its_limit(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=5)
    needs(desk, "t", "x")
    other_job = desk.submit("free")
    other.begin()
    other.do("select from laneway.limits where name = 'x' for update")
    taken = claim_at(desk, NOON, types=("t", "free"))
    other.rollback()
    assert taken == Taken("ok", False, None, [other_job])
    limited_job = desk.submit("t")
    assert claim_at(desk, NOON, types=("t", "free")).seqs == [limited_job]


def test_an_exhausted_limit_is_refused_without_a_lock(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=1)
    needs(desk, "t", "x")
    submitted(desk, 2)
    claim = desk.claimed()[0]
    other.begin()
    other.do("select from laneway.limits for no key update")
    desk.do("set lock_timeout = '1ms'")
    assert desk.claim().state == "limited"
    finish(desk, [claim])
    other.rollback()


# -- rates -------------------------------------------------------------------------------------


def test_a_rate_lets_so_many_start_and_says_when_it_has_room_again(desk: Desk) -> None:
    limit(desk, max_concurrent=None)
    desk.do("update laneway.limits set rate_count = 3, rate_period_s = 60 where name = 'x'")
    needs(desk, "t", "x")
    submitted(desk, 10)
    assert len(claim_at(desk, NOON).seqs) == 3
    shut = claim_at(desk, NOON + timedelta(seconds=1))
    assert (shut.state, shut.seqs) == ("limited", [])
    assert shut.wait_s is not None
    assert 59 <= shut.wait_s <= 63
    just_before = NOON + timedelta(seconds=1 + shut.wait_s - 0.001)
    assert claim_at(desk, just_before).seqs == []
    assert len(claim_at(desk, just_before + timedelta(seconds=0.001)).seqs) == 3


def test_a_rate_counts_starts_and_not_jobs_that_run(desk: Desk) -> None:
    limit(desk, max_concurrent=None)
    desk.do("update laneway.limits set rate_count = 2, rate_period_s = 60 where name = 'x'")
    needs(desk, "t", "x")
    for _ in range(2):
        finish(desk, [desk.running()])
    desk.submit()
    assert desk.claim().state == "limited"


def test_a_rate_per_process_counts_each_worker_by_itself(desk: Desk, other: Desk) -> None:
    limit(desk, max_concurrent=None, scope="process")
    desk.do("update laneway.limits set rate_count = 2, rate_period_s = 60 where name = 'x'")
    needs(desk, "t", "x")
    submitted(desk, 10)
    for who in (desk, other):
        assert len(claim_at(who, NOON).seqs) == 2
        assert claim_at(who, NOON).state == "limited"


@pytest.mark.parametrize("before, after", [(60.0, 5.0), (5.0, 60.0), (86400.0, 0.1)])
def test_a_period_that_is_changed_neither_forgets_nor_blocks_for_ever(
    desk: Desk, before: float, after: float
) -> None:
    limit(desk, max_concurrent=None)
    desk.do("update laneway.limits set rate_count = 2, rate_period_s = %s where name = 'x'", before)
    needs(desk, "t", "x")
    submitted(desk, 10)
    assert len(claim_at(desk, NOON).seqs) == 2
    desk.do("update laneway.limits set rate_period_s = %s where name = 'x'", after)
    later = NOON + timedelta(seconds=2 * after)
    assert len(claim_at(desk, later).seqs) == 2
    assert claim_at(desk, later).state == "limited"


def test_starts_long_past_are_forgotten(desk: Desk) -> None:
    limit(desk, max_concurrent=None)
    desk.do("update laneway.limits set rate_count = 1, rate_period_s = 1 where name = 'x'")
    needs(desk, "t", "x")
    submitted(desk, 30)
    for n in range(30):
        assert len(claim_at(desk, NOON + timedelta(seconds=2 * n)).seqs) == 1
    assert desk.one("select count(*) from laneway.limit_starts") <= 3


def test_a_rate_and_a_maximum_bind_together(desk: Desk) -> None:
    limit(desk, max_concurrent=2)
    desk.do("update laneway.limits set rate_count = 3, rate_period_s = 60 where name = 'x'")
    needs(desk, "t", "x")
    submitted(desk, 9)
    first = claim_at(desk, NOON)
    assert len(first.seqs) == 2
    assert claim_at(desk, NOON).wait_s is None, "nobody knows when they end"
    claims = [Claim(seq, desk.id_of(seq), 1) for seq in first.seqs]
    finish(desk, claims)
    assert len(claim_at(desk, NOON).seqs) == 1
    assert claim_at(desk, NOON).wait_s is not None


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
    desk: Desk, count: int, period: float, steps: list[tuple[float, int]]
) -> None:
    desk.begin()
    limit(desk, max_concurrent=None)
    desk.do(
        "update laneway.limits set rate_count = %s, rate_period_s = %s where name = 'x'",
        count,
        period,
    )
    needs(desk, "t", "x")
    submitted(desk, 40)
    now, starts = NOON, list[datetime]()
    for step, room in steps:
        now += timedelta(seconds=step * period)
        taken = claim_at(desk, now, room)
        starts += [now] * len(taken.seqs)
        recent = [s for s in starts if s >= now - timedelta(seconds=period)]
        assert len(recent) <= count
        if not taken.seqs and taken.wait_s is not None:
            now += timedelta(seconds=taken.wait_s)
            late = claim_at(desk, now, 1)
            starts += [now] * len(late.seqs)
            assert late.seqs or len(starts) == 40, "the wait that was told was too short"
    desk.rollback()


def test_a_rate_holds_by_the_clock_of_the_server(desk: Desk) -> None:
    limit(desk, max_concurrent=None)
    desk.do("update laneway.limits set rate_count = 5, rate_period_s = 0.1 where name = 'x'")
    needs(desk, "t", "x")
    submitted(desk, 30)
    deadline = time.monotonic() + 60
    while desk.one("select count(*) from laneway.lease") < 30:
        desk.claim()
        assert time.monotonic() < deadline
    most = desk.one(
        "select max(n) from (select count(*) over (order by claimed_at range between"
        " interval '0.1 s' preceding and current row) as n from laneway.lease) x"
    )
    assert most <= 5
