"""Keys: at most one job runs per workspace and concurrency_key, and no job waits for a free one."""

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
from tests.support.store_client import StoreClient, error

FIRST = ("t",)


def keyed(
    db: StoreClient, count: int, key: str = "k", job_type: str = "t", **more: Any
) -> list[int]:
    return [db.submit(job_type, concurrency_key=key, **more) for _ in range(count)]


def holder(db: StoreClient, key: str = "k") -> int | None:
    found = db.rows("select seq from laneway.key_holders where concurrency_key = %s", key)
    return found[0][0] if found else None


def ready(db: StoreClient) -> list[int]:
    """The ready jobs."""
    return [seq for (seq,) in db.rows("select seq from laneway.ready order by rank, seq")]


def waiting(db: StoreClient) -> list[int]:
    return [seq for (seq,) in db.rows("select seq from laneway.key_waiters order by rank, seq")]


def run_all(db: StoreClient, types: tuple[str, ...] = FIRST) -> list[int]:
    """Claim and finish until nothing is left; return the order of the jobs."""
    order: list[int] = []
    while (answer := db.claim(100, types)).assignments or answer.more:
        order += [a.claim.seq for a in answer.assignments]
        if answer.assignments:
            verdicts = [Verdict(a.claim, "finish") for a in answer.assignments]
            db.run(leases.settle(verdicts))
        assert db.keys_agree()
    return order


@pytest.fixture(autouse=True)
def quiet(db: StoreClient) -> Iterator[None]:
    """After every test the counters of slots, limits and keys match the jobs."""
    yield
    assert db.slots_agree()
    assert db.limits_agree()
    assert db.keys_agree()


# -- one at a time, in order -------------------------------------------------------------------


def test_one_of_a_key_runs_and_the_others_are_put_aside_at_once(db: StoreClient) -> None:
    seqs = keyed(db, 3)
    answer = db.claim()
    assert [a.claim.seq for a in answer.assignments] == seqs[:1]
    assert (answer.parked, answer.left_over, answer.more) == (2, 0, True)
    assert db.row("lease", seqs[0])["concurrency_key"] == "k"
    assert waiting(db) == seqs[1:]
    assert db.one("select count(*) from laneway.ready") == 0
    again = db.claim()
    assert (again.parked, again.more, again.assignments) == (0, False, [])
    assert db.run(jobs.get(db.id_of(seqs[1]))).status is Status.APPROVED  # type: ignore[union-attr]


def test_jobs_of_a_key_run_by_priority_then_first_in(db: StoreClient) -> None:
    low = keyed(db, 2)
    high = keyed(db, 2, priority=5)
    other = keyed(db, 1, "other")
    assert run_all(db) == [high[0], *other, high[1], *low]


def test_key_belongs_to_its_workspace(db: StoreClient) -> None:
    keyed(db, 1)
    keyed(db, 1, workspace="elsewhere")
    assert len(db.claimed()) == 2


def test_key_holds_over_job_types_and_lanes(db: StoreClient) -> None:
    (first,) = keyed(db, 1)
    keyed(db, 1, job_type="polarity")
    (claim,) = db.claimed()
    assert claim.seq == first
    assert db.claim(5, ["polarity"], lane="interactive").parked == 1
    (answers,) = db.settled(claim, "finish")
    assert (answers.answer, answers.status) == ("promoted", "polarity")
    assert len(db.claimed(5, ["polarity"], lane="interactive")) == 1


def test_better_one_that_comes_goes_before_those_that_waited(db: StoreClient) -> None:
    first, second = keyed(db, 2)
    claim = db.claimed()[0]
    assert claim.seq == first
    db.settle(claim, "finish")
    (better,) = keyed(db, 1, priority=9)
    answer = db.claim()
    assert [a.claim.seq for a in answer.assignments] == [better]
    assert waiting(db) == [second]


def test_job_that_cannot_run_does_not_block_its_key(db: StoreClient) -> None:
    (first,) = keyed(db, 1)
    (stuck,) = keyed(db, 1, job_type="polarity", priority=9)
    waits, late = keyed(db, 2)
    claim = db.claimed(1)[0]
    assert claim.seq == first
    db.claim()
    db.claim(5, ["polarity"], lane="interactive")
    assert waiting(db) == [stuck, waits, late]
    db.do("update laneway.worker_lanes set enabled = false where name = 'interactive'")
    answers = db.settled(claim, "finish")
    assert {a.seq for a in answers if a.answer == "promoted"} == {stuck, waits}
    (now,) = db.claimed()
    assert now.seq == waits
    db.settle(now, "finish")
    assert db.cancel(late).found_in == "approved"
    assert ready(db) == [stuck]


def test_cancel_in_an_open_transaction_stops_no_claim(db: StoreClient, other: StoreClient) -> None:
    _, second, third = keyed(db, 3)
    db.settle(db.claimed()[0], "finish")
    version = db.version()
    other.begin()
    assert other.cancel(second).found_in == "approved"
    plain = db.submit()
    db.do("set lock_timeout = '1ms'")
    assert [c.seq for c in db.claimed(version=version)] == [plain]
    other.commit()
    assert [c.seq for c in db.claimed(version=version)] == [third]


def test_all_columns_of_one_put_aside_come_back(db: StoreClient) -> None:
    (first,) = keyed(db, 1, priority=1)
    (second,) = keyed(db, 1)
    claim = db.claimed(1)[0]
    assert claim.seq == first
    db.do(
        "update laneway.ready set attempt = 4, retries = 2, ready_at = '2030-01-01' where seq = %s",
        second,
    )
    before = db.row("ready", second)
    db.claim()
    assert db.places(second) == ["key_waiters"]
    db.settle(claim, "finish")
    assert db.row("ready", second) == {**before, "fresh": False}


# -- every way to let go of a key --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["finish", "fail", "giveup", "snooze", "release", "cancel"])
def test_every_way_to_end_hands_the_key_on(db: StoreClient, kind: str) -> None:
    first, second = keyed(db, 2)
    claim = db.claimed()[0]
    answers = db.settled(claim, kind, error=error(), delay_s=3600 if kind != "release" else None)
    assert [(a.seq, a.status) for a in answers if a.answer == "promoted"] == [(second, "t")]
    assert holder(db) is None
    assert db.places(second) == ["ready"]
    now = db.claimed()[0]
    # One that was released is still the first.
    assert now.seq == (first if kind == "release" else second)
    db.settle(now, "finish")
    assert holder(db) is None


def test_lapse_and_a_burial_hand_the_key_on(db: StoreClient) -> None:
    _, second, third = keyed(db, 3, max_retries=0)
    db.claim()
    db.do("update laneway.lease set lease_until = '-infinity'")
    assert db.run(leases.run_watchdog(db.worker, 10)).reclaimed == 1
    assert [c.seq for c in db.claimed()] == [second]
    assert db.run(leases.fail_worker(db.worker, "gone", hung=False, culprit=None)) == 1
    assert [c.seq for c in db.claimed()] == [third]


def test_watchdog_returns_types_of_jobs_that_got_a_key(db: StoreClient) -> None:
    keyed(db, 1)
    keyed(db, 1, job_type="polarity")
    db.claim()
    db.claim(5, ["polarity"], lane="interactive")
    db.do("update laneway.lease set lease_until = '-infinity'")
    assert set(db.run(leases.run_watchdog(db.worker, 10)).job_types or []) == {"t", "polarity"}


def test_self_finished_job_keeps_key_until_release(db: StoreClient) -> None:
    first, second = keyed(db, 2)
    claim = db.claimed()[0]
    db.run(caller_transaction.finish(claim, "null", 0.0))
    assert holder(db) == first
    assert db.keys_agree()
    epoch = db.run(leases.run_watchdog(db.worker, 10)).epoch
    assert epoch is not None
    assert db.run(retention.sweep_keys(LeaderTerm(db.worker, epoch))) == 0
    assert db.run(retention.release_self_finished(LeaderTerm(db.worker, epoch))) == 1
    assert (holder(db), ready(db)) == (None, [second])


# -- the operator's verbs ----------------------------------------------------------------------


def test_cancel_of_one_that_waits_leaves_the_others_in_order(db: StoreClient) -> None:
    first, second, third = keyed(db, 3)
    claim = db.claimed()[0]
    assert db.cancel(second).found_in == "approved"
    assert db.places(second) == ["outcome"]
    db.settle(claim, "finish")
    assert (ready(db), first) == ([third], claim.seq)


def test_cancel_of_the_one_that_is_next_hands_the_key_on(db: StoreClient) -> None:
    _, second, third = keyed(db, 3)
    db.settle(db.claimed()[0], "finish")
    with psycopg.connect(db.dsn, autocommit=True) as listener:
        listener.execute("listen laneway")
        assert db.cancel(second).found_in == "approved"
        assert [n.payload for n in listener.notifies(timeout=60, stop_after=1)] == ["wake t"]
    assert ready(db) == [third]
    db.cancel(third)
    assert ready(db) == waiting(db) == []


def test_cancel_of_the_holder_keeps_the_key_until_it_ends(db: StoreClient) -> None:
    first, second = keyed(db, 2)
    claim = db.claimed()[0]
    assert db.cancel(first).found_in == "running"
    assert holder(db) == first
    db.settle(claim, "finish")
    assert db.row("outcome", first)["status"] == "cancelled"
    assert ready(db) == [second]


def test_reprioritize_of_waiting_job_changes_next_job(db: StoreClient) -> None:
    first, second, third = keyed(db, 3)
    claim = db.claimed()[0]
    assert db.run(jobs.reprioritize(db.id_of(third), 5)).found_in == "approved"
    assert waiting(db) == [third, second]
    db.settle(claim, "finish")
    assert run_all(db) == [third, second]
    assert claim.seq == first


def test_retry_of_a_job_of_a_busy_key_waits_its_turn(db: StoreClient) -> None:
    first, second = keyed(db, 2, max_retries=0)
    db.settle(db.claimed()[0], "fail", error=error())
    assert [c.seq for c in db.claimed()] == [second]
    db.retry(first)
    answer = db.claim()
    assert (answer.assignments, answer.parked) == ([], 1)
    assert waiting(db) == [first]


def test_max_age_ends_waiting_and_next_jobs(db: StoreClient) -> None:
    seqs = keyed(db, 4)
    db.settle(db.claimed()[0], "finish")
    overdue = seqs[1:3]
    db.do("insert into laneway.deadlines select unnest(%s::bigint[]), '2020-01-01'", overdue)
    epoch = db.run(leases.run_watchdog(db.worker, 10)).epoch
    assert epoch is not None
    while db.run(retention.expire_overaged(LeaderTerm(db.worker, epoch))).more:
        pass
    assert [db.places(seq) for seq in overdue] == [["outcome"]] * 2
    assert ready(db) == [seqs[3]]


# -- races -------------------------------------------------------------------------------------


def test_finish_waits_for_claim_that_parks_a_job(db: StoreClient, other: StoreClient) -> None:
    """Otherwise it would see no waiter, and the waiter would never be woken."""
    keyed(db, 1)
    claim = db.claimed()[0]
    (late,) = keyed(db, 1)
    other.begin()
    assert other.claim().parked == 1
    ending = db.later(lambda: db.settled(claim, "finish"))
    other.await_blocked(db)
    other.commit()
    assert [a.seq for a in ending.result(20)] == [late]


def test_claim_waits_for_an_end_under_way_and_takes_the_key(
    db: StoreClient, other: StoreClient
) -> None:
    keyed(db, 1)
    claim = db.claimed()[0]
    (late,) = keyed(db, 1)
    version = db.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = db.later(lambda: db.claimed(version=version))
    other.await_blocked(db)
    other.commit()
    assert [c.seq for c in claiming.result(20)] == [late]


@pytest.mark.parametrize("before", [1, 3])
def test_claim_with_older_snapshot_does_not_overtake_waiting_job(
    db: StoreClient, other: StoreClient, before: int
) -> None:
    _, *waited = keyed(db, 1 + before)
    (claim,) = db.claimed()
    (late,) = keyed(db, 1)
    version = db.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = db.later(lambda: db.claim(version=version))
    other.await_blocked(db)
    other.commit()
    assert (claiming.result(20).assignments, holder(db)) == ([], None)
    assert late in waiting(db)
    assert run_all(db) == [*waited, late]


def test_end_that_is_rolled_back_keeps_its_key(db: StoreClient, other: StoreClient) -> None:
    keyed(db, 1)
    claim = db.claimed()[0]
    keyed(db, 1)
    version = db.version()
    other.begin()
    other.settle(claim, "finish")
    claiming = db.later(lambda: db.claim(version=version))
    other.await_blocked(db)
    other.rollback()
    assert claiming.result(20).parked == 1


def test_finish_does_not_wait_for_concurrent_cancel(db: StoreClient, other: StoreClient) -> None:
    _, second, third = keyed(db, 3)
    claim = db.claimed()[0]
    other.begin()
    other.cancel(second)
    db.do("set lock_timeout = '1ms'")
    assert [a.seq for a in db.settled(claim, "finish")] == [third]
    other.commit()


def test_one_passed_over_by_a_cancel_that_was_rolled_back_is_swept_up(
    db: StoreClient, other: StoreClient
) -> None:
    _, second = keyed(db, 2)
    claim = db.claimed()[0]
    other.begin()
    other.cancel(second)
    assert db.settled(claim, "finish") == []
    other.rollback()
    assert holder(db) is None
    assert waiting(db) == [second]
    assert db.one("select laneway.sweep_keys()") == 1
    assert [c.seq for c in db.claimed()] == [second]
    assert db.one("select laneway.sweep_keys()") == 0


def test_one_passed_over_while_it_got_another_priority_is_next(
    db: StoreClient, other: StoreClient
) -> None:
    _, second = keyed(db, 2)
    claim = db.claimed()[0]
    db.begin()
    # Holds the key while the priority changes, and then looks for the next job.
    db.do("select from laneway.key_holders for update")
    changing = other.later(lambda: other.run(jobs.reprioritize(other.id_of(second), 3)))
    db.await_blocked(other)
    assert db.settled(claim, "finish") == []
    db.commit()
    assert changing.result(20).found_in == "approved"
    assert db.row("ready", second)["rank"] == -3


def test_key_held_by_a_job_that_is_not_there_is_swept_up(db: StoreClient) -> None:
    _, second = keyed(db, 2)
    db.claim()
    db.do("update laneway.key_holders set seq = 999999999")
    db.do("update laneway.lease set concurrency_key = null")
    assert db.one("select laneway.sweep_keys()") == 1
    assert (holder(db), ready(db)) == (None, [second])


# -- parking -----------------------------------------------------------------------------------


def test_park_puts_aside_those_of_held_keys_and_touches_no_other(db: StoreClient) -> None:
    (running,) = db.claimed() if keyed(db, 1) else []
    blocked = keyed(db, 5)
    free = keyed(db, 2, "free")
    plain = [db.submit() for _ in range(2)]
    assert db.run(leases.park(["t"], 100)) == 5
    assert waiting(db) == blocked
    assert [seq for (seq,) in db.rows("select seq from laneway.ready order by seq")] == [
        *free,
        *plain,
    ]
    assert db.run(leases.park(["t"], 100)) == 0
    assert holder(db) == running.seq


def test_park_leaves_those_of_a_free_key_where_they_are(db: StoreClient) -> None:
    _, second, third = keyed(db, 3)
    db.settle(db.claimed()[0], "finish")
    (late,) = keyed(db, 1, priority=9)
    assert db.run(leases.park(["t"], 100)) == 0
    assert (ready(db), waiting(db)) == ([late, second], [third])


def test_park_hides_nothing_that_can_be_claimed(db: StoreClient, other: StoreClient) -> None:
    keyed(db, 1)
    db.claim()
    keyed(db, 3)
    free = [db.submit() for _ in range(3)]
    other.begin()
    assert other.run(leases.park(["t"], 100)) == 3
    assert [c.seq for c in db.claimed(3)] == free
    other.commit()


def test_park_skips_jobs_of_running_claim(db: StoreClient, other: StoreClient) -> None:
    keyed(db, 1)
    db.claim()
    (late,) = keyed(db, 1)
    other.begin()
    other.do("select from laneway.ready where seq = %s for update", late)
    db.do("set lock_timeout = '1ms'")
    assert db.run(leases.park(["t"], 100)) == 0
    other.rollback()


def test_analysis_neither_needs_nor_frees_a_key(db: StoreClient) -> None:
    db.do("insert into laneway.job_types (name, has_analysis) values ('t', true)")
    keyed(db, 3)
    claims = db.claimed(3, ["\x01t"], lane="analysis")
    assert len(claims) == 3
    assert holder(db) is None
    assert db.run(leases.park(["\x01t"], 100)) == 0
    db.run(leases.settle([Verdict(c, "analyzed", result="{}") for c in claims]))
    assert [c.seq for c in db.claimed()] == [claims[0].seq]


def test_key_and_a_limit_together(db: StoreClient) -> None:
    db.do("insert into laneway.limits (name, max_concurrent) values ('x', 2)")
    db.do("insert into laneway.job_types (name, limits) values ('t', '{x}')")
    first = keyed(db, 3, "a")
    second = keyed(db, 3, "b")
    got: list[Claim] = []
    while (answer := db.claim()).state == "ok" and (answer.assignments or answer.parked):
        got += [a.claim for a in answer.assignments]
    assert [c.seq for c in got] == [first[0], second[0]]
    assert db.one("select sum(running) from laneway.limit_usage") == 2
