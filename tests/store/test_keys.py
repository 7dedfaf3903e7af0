"""Keys: at most one job runs per workspace and concurrency_key, and nobody waits for a free one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from laneway.domain.claim import Claim
from laneway.domain.states import Status
from laneway.store import caller_transaction, jobs, leases, retention
from laneway.store.leases import Verdict
from laneway.store.retention import LeaderTerm
from tests.store.desk import Desk, error

FIRST = ("t",)


def keyed(desk: Desk, count: int, key: str = "k", job_type: str = "t", **more: Any) -> list[int]:
    return [desk.submit(job_type, concurrency_key=key, **more) for _ in range(count)]


def holder(desk: Desk, key: str = "k") -> int | None:
    found = desk.rows("select seq from laneway.key_holders where concurrency_key = %s", key)
    return found[0][0] if found else None


def ready(desk: Desk) -> list[int]:
    """Those that a claim would meet."""
    return [seq for (seq,) in desk.rows("select seq from laneway.ready order by rank, seq")]


def waiting(desk: Desk) -> list[int]:
    return [seq for (seq,) in desk.rows("select seq from laneway.key_waiters order by rank, seq")]


def run_all(desk: Desk, types: tuple[str, ...] = FIRST) -> list[int]:
    """Claims and finishes until nothing is left; the order in which jobs ran."""
    order: list[int] = []
    while (answer := desk.claim(100, types)).assignments or answer.more:
        order += [a.claim.seq for a in answer.assignments]
        if answer.assignments:
            verdicts = [Verdict(a.claim, "finish") for a in answer.assignments]
            desk.run(leases.settle(verdicts))
        assert desk.keys_agree()
    return order


@pytest.fixture(autouse=True)
def quiet(desk: Desk) -> Iterator[None]:
    """Whatever a test did: slots, limits and keys are those of the jobs there are."""
    yield
    assert desk.slots_agree()
    assert desk.limits_agree()
    assert desk.keys_agree()


# -- one at a time, in order -------------------------------------------------------------------


def test_one_of_a_key_runs_and_the_others_are_put_aside_at_once(desk: Desk) -> None:
    seqs = keyed(desk, 3)
    answer = desk.claim()
    assert [a.claim.seq for a in answer.assignments] == seqs[:1]
    assert (answer.parked, answer.left_over, answer.more) == (2, 0, True)
    assert desk.row("lease", seqs[0])["concurrency_key"] == "k"
    assert waiting(desk) == seqs[1:]
    assert desk.one("select count(*) from laneway.ready") == 0
    again = desk.claim()
    assert (again.parked, again.more, again.assignments) == (0, False, [])
    assert desk.run(jobs.get(desk.id_of(seqs[1]))).status is Status.APPROVED  # type: ignore[union-attr]


def test_jobs_of_a_key_run_by_priority_then_first_in(desk: Desk) -> None:
    low = keyed(desk, 2)
    high = keyed(desk, 2, priority=5)
    other = keyed(desk, 1, "other")
    assert run_all(desk) == [high[0], *other, high[1], *low]


def test_a_key_belongs_to_its_workspace(desk: Desk) -> None:
    keyed(desk, 1)
    keyed(desk, 1, workspace="elsewhere")
    assert len(desk.claimed()) == 2


def test_a_key_holds_over_job_types_and_lanes(desk: Desk) -> None:
    (first,) = keyed(desk, 1)
    keyed(desk, 1, job_type="polarity")
    (claim,) = desk.claimed()
    assert claim.seq == first
    assert desk.claim(5, ["polarity"], lane="interactive").parked == 1
    (told,) = desk.settled(claim, "finish")
    assert (told.answer, told.status) == ("promoted", "polarity")
    assert len(desk.claimed(5, ["polarity"], lane="interactive")) == 1


def test_a_better_one_that_comes_goes_before_those_that_waited(desk: Desk) -> None:
    first, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    assert claim.seq == first
    desk.settle(claim, "finish")
    (better,) = keyed(desk, 1, priority=9)
    answer = desk.claim()
    assert [a.claim.seq for a in answer.assignments] == [better]
    assert waiting(desk) == [second]


def test_one_that_cannot_run_keeps_its_key_from_nobody(desk: Desk) -> None:
    (first,) = keyed(desk, 1)
    (stuck,) = keyed(desk, 1, job_type="polarity", priority=9)
    waits, late = keyed(desk, 2)
    claim = desk.claimed(1)[0]
    assert claim.seq == first
    desk.claim()
    desk.claim(5, ["polarity"], lane="interactive")
    assert waiting(desk) == [stuck, waits, late]
    desk.do("update laneway.worker_lanes set enabled = false where name = 'interactive'")
    told = desk.settled(claim, "finish")
    assert {a.seq for a in told if a.answer == "promoted"} == {stuck, waits}
    (now,) = desk.claimed()
    assert now.seq == waits
    desk.settle(now, "finish")
    assert desk.cancel(late).found_in == "approved"
    assert ready(desk) == [stuck]


def test_a_cancel_in_an_open_transaction_stops_no_claim(desk: Desk, other: Desk) -> None:
    _, second, third = keyed(desk, 3)
    desk.settle(desk.claimed()[0], "finish")
    version = desk.version()
    other.begin()
    assert other.cancel(second).found_in == "approved"
    plain = desk.submit()
    desk.do("set lock_timeout = '1ms'")
    assert [c.seq for c in desk.claimed(version=version)] == [plain]
    other.commit()
    assert [c.seq for c in desk.claimed(version=version)] == [third]


def test_all_columns_of_one_put_aside_come_back(desk: Desk) -> None:
    (first,) = keyed(desk, 1, priority=1)
    (second,) = keyed(desk, 1)
    claim = desk.claimed(1)[0]
    assert claim.seq == first
    desk.do(
        "update laneway.ready set attempt = 4, retries = 2, ready_at = '2030-01-01' where seq = %s",
        second,
    )
    before = desk.row("ready", second)
    desk.claim()
    assert desk.places(second) == ["key_waiters"]
    desk.settle(claim, "finish")
    assert desk.row("ready", second) == {**before, "fresh": False}


# -- every way to let go of a key --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "snooze", "release", "cancel"])
def test_every_way_to_end_hands_the_key_on(desk: Desk, kind: str) -> None:
    first, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    told = desk.settled(claim, kind, error=error(), delay_s=3600 if kind != "release" else None)
    assert [(a.seq, a.status) for a in told if a.answer == "promoted"] == [(second, "t")]
    assert holder(desk) is None
    assert desk.places(second) == ["ready"]
    now = desk.claimed()[0]
    # One that was released is still the first.
    assert now.seq == (first if kind == "release" else second)
    desk.settle(now, "finish")
    assert holder(desk) is None


def test_a_lapse_and_a_burial_hand_the_key_on(desk: Desk) -> None:
    _, second, third = keyed(desk, 3, max_retries=0)
    desk.claim()
    desk.do("update laneway.lease set lease_until = '-infinity'")
    assert desk.run(leases.watch(desk.worker, 10)).reclaimed == 1
    assert [c.seq for c in desk.claimed()] == [second]
    assert desk.run(leases.fail_worker(desk.worker, "gone", hung=False, culprit=None)) == 1
    assert [c.seq for c in desk.claimed()] == [third]


def test_the_watchdog_names_the_types_of_those_who_got_a_key(desk: Desk) -> None:
    keyed(desk, 1)
    keyed(desk, 1, job_type="polarity")
    desk.claim()
    desk.claim(5, ["polarity"], lane="interactive")
    desk.do("update laneway.lease set lease_until = '-infinity'")
    assert set(desk.run(leases.watch(desk.worker, 10)).job_types or []) == {"t", "polarity"}


def test_a_job_that_finished_apart_keeps_its_key_until_it_is_given_back(desk: Desk) -> None:
    first, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    desk.run(caller_transaction.finish(claim, "null", 0.0))
    assert holder(desk) == first
    assert desk.keys_agree()
    epoch = desk.run(leases.watch(desk.worker, 10)).epoch
    assert epoch is not None
    assert desk.run(retention.sweep_keys(LeaderTerm(desk.worker, epoch))) == 0
    assert desk.run(retention.fold_finished(LeaderTerm(desk.worker, epoch))) == 1
    assert (holder(desk), ready(desk)) == (None, [second])


# -- the operator's verbs ----------------------------------------------------------------------


def test_cancel_of_one_that_waits_leaves_the_others_in_order(desk: Desk) -> None:
    first, second, third = keyed(desk, 3)
    claim = desk.claimed()[0]
    assert desk.cancel(second).found_in == "approved"
    assert desk.places(second) == ["outcome"]
    desk.settle(claim, "finish")
    assert (ready(desk), first) == ([third], claim.seq)


def test_cancel_of_the_one_that_is_next_hands_the_key_on(desk: Desk) -> None:
    _, second, third = keyed(desk, 3)
    desk.settle(desk.claimed()[0], "finish")
    with psycopg.connect(desk.dsn, autocommit=True) as listener:
        listener.execute("listen laneway")
        assert desk.cancel(second).found_in == "approved"
        assert [n.payload for n in listener.notifies(timeout=60, stop_after=1)] == ["wake t"]
    assert ready(desk) == [third]
    desk.cancel(third)
    assert ready(desk) == waiting(desk) == []


def test_cancel_of_the_holder_keeps_the_key_until_it_ends(desk: Desk) -> None:
    first, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    assert desk.cancel(first).found_in == "running"
    assert holder(desk) == first
    desk.settle(claim, "finish")
    assert desk.row("outcome", first)["status"] == "cancelled"
    assert ready(desk) == [second]


def test_reprioritize_of_one_that_waits_changes_who_is_next(desk: Desk) -> None:
    first, second, third = keyed(desk, 3)
    claim = desk.claimed()[0]
    assert desk.run(jobs.reprioritize(desk.id_of(third), 5)).found_in == "approved"
    assert waiting(desk) == [third, second]
    desk.settle(claim, "finish")
    assert run_all(desk) == [third, second]
    assert claim.seq == first


def test_retry_of_a_job_of_a_busy_key_waits_its_turn(desk: Desk) -> None:
    first, second = keyed(desk, 2, max_retries=0)
    desk.settle(desk.claimed()[0], "fail", error=error())
    assert [c.seq for c in desk.claimed()] == [second]
    desk.retry(first)
    answer = desk.claim()
    assert (answer.assignments, answer.parked) == ([], 1)
    assert waiting(desk) == [first]


def test_max_age_ends_who_waits_and_who_is_next(desk: Desk) -> None:
    seqs = keyed(desk, 4)
    desk.settle(desk.claimed()[0], "finish")
    overdue = seqs[1:3]
    desk.do("insert into laneway.deadlines select unnest(%s::bigint[]), '2020-01-01'", overdue)
    epoch = desk.run(leases.watch(desk.worker, 10)).epoch
    assert epoch is not None
    while desk.run(retention.expire_overaged(LeaderTerm(desk.worker, epoch))).more:
        pass
    assert [desk.places(seq) for seq in overdue] == [["outcome"]] * 2
    assert ready(desk) == [seqs[3]]


# -- races -------------------------------------------------------------------------------------


def test_an_end_waits_for_a_claim_that_puts_somebody_aside(desk: Desk, other: Desk) -> None:
    """Else it would see nobody waiting, and nobody would ever be told."""
    keyed(desk, 1)
    claim = desk.claimed()[0]
    (late,) = keyed(desk, 1)
    other.begin()
    assert other.claim().parked == 1
    ending = desk.later(lambda: desk.settled(claim, "finish"))
    other.await_blocked(desk)
    other.commit()
    assert [a.seq for a in ending.result(20)] == [late]


def test_a_claim_waits_for_an_end_under_way_and_takes_the_key(desk: Desk, other: Desk) -> None:
    keyed(desk, 1)
    claim = desk.claimed()[0]
    (late,) = keyed(desk, 1)
    version = desk.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = desk.later(lambda: desk.claimed(version=version))
    other.await_blocked(desk)
    other.commit()
    assert [c.seq for c in claiming.result(20)] == [late]


@pytest.mark.parametrize("before", [1, 3])
def test_a_claim_that_looked_before_an_end_does_not_overtake_who_waited(
    desk: Desk, other: Desk, before: int
) -> None:
    _, *waited = keyed(desk, 1 + before)
    (claim,) = desk.claimed()
    (late,) = keyed(desk, 1)
    version = desk.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = desk.later(lambda: desk.claim(version=version))
    other.await_blocked(desk)
    other.commit()
    assert (claiming.result(20).assignments, holder(desk)) == ([], None)
    assert late in waiting(desk)
    assert run_all(desk) == [*waited, late]


def test_an_end_that_is_rolled_back_keeps_its_key(desk: Desk, other: Desk) -> None:
    keyed(desk, 1)
    claim = desk.claimed()[0]
    keyed(desk, 1)
    version = desk.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = desk.later(lambda: desk.claim(version=version))
    other.await_blocked(desk)
    other.rollback()
    assert claiming.result(20).parked == 1


def test_an_end_does_not_wait_for_one_who_is_being_cancelled(desk: Desk, other: Desk) -> None:
    _, second, third = keyed(desk, 3)
    claim = desk.claimed()[0]
    other.begin()
    other.cancel(second)
    desk.do("set lock_timeout = '1ms'")
    assert [a.seq for a in desk.settled(claim, "finish")] == [third]
    other.commit()


def test_one_passed_over_by_a_cancel_that_was_rolled_back_is_swept_up(
    desk: Desk, other: Desk
) -> None:
    _, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    other.begin()
    other.cancel(second)
    assert desk.settled(claim, "finish") == []
    other.rollback()
    assert holder(desk) is None
    assert waiting(desk) == [second]
    assert desk.one("select laneway.sweep_keys()") == 1
    assert [c.seq for c in desk.claimed()] == [second]
    assert desk.one("select laneway.sweep_keys()") == 0


def test_one_passed_over_while_it_got_another_priority_is_next(desk: Desk, other: Desk) -> None:
    _, second = keyed(desk, 2)
    claim = desk.claimed()[0]
    desk.begin()
    # Holds the key while the priority changes, and then looks for who is next.
    desk.do("select from laneway.key_holders for update")
    changing = other.later(lambda: other.run(jobs.reprioritize(other.id_of(second), 3)))
    desk.await_blocked(other)
    assert desk.settled(claim, "finish") == []
    desk.commit()
    assert changing.result(20).found_in == "approved"
    assert desk.row("ready", second)["rank"] == -3


def test_a_key_held_by_a_job_that_is_not_there_is_swept_up(desk: Desk) -> None:
    _, second = keyed(desk, 2)
    desk.claim()
    desk.do("update laneway.key_holders set seq = 999999999")
    desk.do("update laneway.lease set concurrency_key = null")
    assert desk.one("select laneway.sweep_keys()") == 1
    assert (holder(desk), ready(desk)) == (None, [second])


# -- parking -----------------------------------------------------------------------------------


def test_park_puts_aside_those_of_held_keys_and_touches_no_other(desk: Desk) -> None:
    (running,) = desk.claimed() if keyed(desk, 1) else []
    blocked = keyed(desk, 5)
    free = keyed(desk, 2, "free")
    plain = [desk.submit() for _ in range(2)]
    assert desk.run(leases.park(["t"], 100)) == 5
    assert waiting(desk) == blocked
    assert [seq for (seq,) in desk.rows("select seq from laneway.ready order by seq")] == [
        *free,
        *plain,
    ]
    assert desk.run(leases.park(["t"], 100)) == 0
    assert holder(desk) == running.seq


def test_park_leaves_those_of_a_free_key_where_they_are(desk: Desk) -> None:
    _, second, third = keyed(desk, 3)
    desk.settle(desk.claimed()[0], "finish")
    (late,) = keyed(desk, 1, priority=9)
    assert desk.run(leases.park(["t"], 100)) == 0
    assert (ready(desk), waiting(desk)) == ([late, second], [third])


def test_park_hides_nothing_that_can_be_claimed(desk: Desk, other: Desk) -> None:
    keyed(desk, 1)
    desk.claim()
    keyed(desk, 3)
    free = [desk.submit() for _ in range(3)]
    other.begin()
    assert other.run(leases.park(["t"], 100)) == 3
    assert [c.seq for c in desk.claimed(3)] == free
    other.commit()


def test_park_passes_over_what_a_claim_is_taking(desk: Desk, other: Desk) -> None:
    keyed(desk, 1)
    desk.claim()
    (late,) = keyed(desk, 1)
    other.begin()
    other.do("select from laneway.ready where seq = %s for update", late)
    desk.do("set lock_timeout = '1ms'")
    assert desk.run(leases.park(["t"], 100)) == 0
    other.rollback()


def test_an_analysis_neither_needs_nor_frees_a_key(desk: Desk) -> None:
    desk.do("insert into laneway.job_types (name, has_analysis) values ('t', true)")
    keyed(desk, 3)
    claims = desk.claimed(3, ["\x01t"], lane="analysis")
    assert len(claims) == 3
    assert holder(desk) is None
    assert desk.run(leases.park(["\x01t"], 100)) == 0
    desk.run(leases.settle([Verdict(c, "analyzed", result="{}") for c in claims]))
    assert [c.seq for c in desk.claimed()] == [claims[0].seq]


def test_a_key_and_a_limit_together(desk: Desk) -> None:
    desk.do("insert into laneway.limits (name, max_concurrent) values ('x', 2)")
    desk.do("insert into laneway.job_types (name, limits) values ('t', '{x}')")
    first = keyed(desk, 3, "a")
    second = keyed(desk, 3, "b")
    got: list[Claim] = []
    while (answer := desk.claim()).state == "ok" and (answer.assignments or answer.parked):
        got += [a.claim for a in answer.assignments]
    assert [c.seq for c in got] == [first[0], second[0]]
    assert desk.one("select sum(running) from laneway.limit_usage") == 2
