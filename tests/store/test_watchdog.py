"""Leadership by lease and epoch, and the watchdog that takes back what nobody keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.store import leases, workers
from laneway.store.leases import Report, WatchAnswer
from laneway.store.workers import WorkerInfo
from tests.store.desk import Desk

LAPSE = "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"


def lead(desk: Desk, holder: UUID, at: str = "0 s", ttl: float = 10) -> int | None:
    """Leadership asked for at a time of the test's own."""
    epoch = desk.one(
        "select laneway.lead(%s, %s, timestamptz '2030-01-01' + %s::interval)", holder, ttl, at
    )
    assert epoch is None or isinstance(epoch, int)
    return epoch


def watch(desk: Desk, holder: UUID | None = None, limit: int = 200) -> WatchAnswer:
    return desk.run(leases.watch(holder or desk.worker, 10, limit))


def test_the_epoch_grows_with_each_new_holder_and_only_then(desk: Desk) -> None:
    ann, bob = uuid4(), uuid4()
    assert lead(desk, ann) == 1
    assert lead(desk, ann, "5 s") == 1
    assert lead(desk, ann, "100 s") == 1, "its own lapse, and nobody came"
    assert lead(desk, bob, "111 s") == 2
    assert lead(desk, ann, "130 s") == 3


def test_a_second_holder_waits_until_the_first_has_lapsed(desk: Desk) -> None:
    ann, bob = uuid4(), uuid4()
    lead(desk, ann)
    assert lead(desk, bob, "9.9 s") is None
    assert lead(desk, bob, "10 s") is None
    assert lead(desk, bob, "10.001 s") == 2
    assert lead(desk, ann, "11 s") is None


def test_a_resignation_hands_over_at_once_and_only_ones_own(desk: Desk) -> None:
    ann, bob = uuid4(), uuid4()
    lead(desk, ann)
    desk.run(leases.resign(bob))
    assert lead(desk, bob, "1 s") is None
    desk.run(leases.resign(ann))
    assert lead(desk, bob, "1 s") == 2


def test_two_that_ask_at_once_get_one_leader(desk: Desk, other: Desk) -> None:
    other.begin()
    assert other.run(leases.watch(other.worker, 10)).epoch == 1
    waiting = desk.later(lambda: watch(desk))
    other.await_blocked(desk)
    other.commit()
    assert waiting.result(20).epoch is None


def test_candidate_that_comes_second_after_a_resignation_waits(desk: Desk, other: Desk) -> None:
    """It still sees the end of the old leader, which is at minus infinity."""
    watch(desk)
    desk.run(leases.resign(desk.worker))
    other.begin()
    assert watch(other, uuid4()).epoch == 2
    waiting = desk.later(lambda: watch(desk, uuid4()))
    other.await_blocked(desk)
    other.commit()
    answer = waiting.result(20)
    assert (answer.epoch, answer.next_s) == (None, None)


def test_who_does_not_lead_takes_nothing_back(desk: Desk) -> None:
    claim = desk.running()
    desk.do(LAPSE)
    assert watch(desk, uuid4()).reclaimed == 1
    (claim,) = _wait_over_and_claim(desk)
    desk.do(LAPSE)
    answer = watch(desk, uuid4())
    assert (answer.epoch, answer.reclaimed, answer.more) == (None, 0, False)
    assert desk.places(claim.seq) == ["lease"]


def test_a_lapsed_lease_is_taken_back_and_charged(desk: Desk, other: Desk) -> None:
    desk.run(
        workers.register(
            WorkerInfo(
                id=desk.worker,
                name="box-7",
                host="h",
                pid=1,
                code="0",
                job_types=["t"],
                lanes=None,
                concurrency=1,
            )
        )
    )
    lapsed, alive = desk.running(), other.running()
    desk.do(LAPSE + " where seq = %s", lapsed.seq)
    assert watch(desk)[:4] == (1, 1, ["t"], False)
    row = desk.row("delayed", lapsed.seq)
    assert (row["attempt"], row["retries"]) == (1, 1)
    kept = desk.row("attempts", lapsed.seq)
    assert kept["outcome"] == "lost"
    assert kept["error"]["type"] == "WorkerLost"
    assert kept["error"]["message"] == "worker lost: box-7 did not renew the lease of attempt 1"
    assert desk.places(alive.seq) == ["lease"]
    assert desk.slots_agree()


def test_a_budget_spent_on_lost_workers_ends_in_failed_worker_lost(desk: Desk) -> None:
    claim = desk.running(max_retries=2, unique_key="k")
    for attempt in (1, 2, 3):
        desk.do(LAPSE)
        assert watch(desk).reclaimed == 1
        if attempt < 3:
            (claim,) = _wait_over_and_claim(desk)
            assert claim.attempt == attempt + 1
    outcome = desk.row("outcome", claim.seq)
    assert (outcome["status"], outcome["attempt"], outcome["retries"]) == ("failed", 3, 2)
    assert outcome["error"]["message"].startswith("worker lost")
    assert desk.one("select count(*) from laneway.job_keys") == 0
    assert watch(desk).reclaimed == 0


def test_a_lapsed_job_that_was_to_be_cancelled_is_cancelled(desk: Desk) -> None:
    claim = desk.running()
    desk.cancel(claim.seq, "ann")
    desk.do(LAPSE)
    assert watch(desk).reclaimed == 1
    outcome = desk.row("outcome", claim.seq)
    assert (outcome["status"], outcome["cancel_by"]) == ("cancelled", "ann")


def test_no_progress_takes_back_the_types_that_ask_for_it_and_no_others(desk: Desk) -> None:
    desk.do(
        "insert into laneway.job_types (name, stale) values ('p', 'progress'), ('h', 'heartbeat')"
    )
    silent, moving, beating = desk.running("p"), desk.running("p"), desk.running("h")
    desk.do("update laneway.lease set claimed_at = clock_timestamp() - interval '31 minutes'")
    desk.report([Report(moving, done=1)])
    desk.heartbeat([silent, moving, beating])
    assert watch(desk)[:4] == (1, 1, ["p"], False)
    kept = desk.row("attempts", silent.seq)
    assert (kept["outcome"], kept["error"]["type"]) == ("stalled", "Stalled")
    assert kept["error"]["message"] == "no progress for 30 minutes"
    assert desk.row("delayed", silent.seq)["retries"] == 1
    desk.do("update laneway.lease set last_progress_at = clock_timestamp() - interval '31 minutes'")
    desk.heartbeat([moving, beating])
    assert watch(desk).reclaimed == 1
    assert desk.places(beating.seq) == ["lease"]


def test_a_pass_takes_back_a_bounded_number_of_one_lane_and_says_if_there_is_more(
    desk: Desk,
) -> None:
    for _ in range(7):
        desk.submit()
    desk.submit("polarity")
    desk.claimed()
    desk.claimed(types=["polarity"], lane="interactive")
    desk.do(LAPSE)
    passes: list[WatchAnswer] = []
    while not passes or passes[-1].more:
        passes.append(watch(desk, limit=3))
    assert sum(p.reclaimed for p in passes) == 8
    assert max(p.reclaimed for p in passes) == 3
    assert all(len(p.job_types or []) == 1 for p in passes)
    assert desk.one("select count(*) from laneway.lease") == 0


@pytest.mark.parametrize("held", ["default", "interactive"])
def test_lapsed_leases_that_somebody_holds_do_not_hide_the_others(
    desk: Desk, other: Desk, held: str
) -> None:
    for job_type in ("t", "polarity"):
        desk.running(job_type)
    desk.do(LAPSE)
    other.begin()
    other.do("select from laneway.lease where lane = %s for update", held)
    desk.do("set lock_timeout = '1ms'")
    assert watch(desk).reclaimed == 1
    assert watch(desk).reclaimed == 0
    other.rollback()
    assert watch(desk).reclaimed == 1


def test_what_is_lapsed_when_its_lane_and_worker_are_gone_is_taken_back(desk: Desk) -> None:
    claim = desk.running("polarity")
    desk.do("delete from laneway.worker_lanes where name = 'interactive'")
    desk.do("delete from laneway.workers")
    desk.do(LAPSE)
    assert watch(desk).reclaimed == 1
    assert desk.places(claim.seq) == ["delayed"]


def test_a_zombie_is_fenced_in_every_write_after_it_was_taken_back(desk: Desk) -> None:
    zombie = desk.running()
    desk.do(LAPSE)
    watch(desk)
    assert [a.answer for a in desk.heartbeat([zombie])] == ["fenced"]
    assert [a.answer for a in desk.report([Report(zombie, done=1)])] == ["fenced"]
    for kind in ("finish", "fail", "giveup", "snooze", "release", "cancel"):
        answer = desk.settle(zombie, kind)
        assert answer is not None
        assert answer.answer == "fenced"


def test_a_buried_worker_is_charged_for_the_culprit_and_nothing_else(
    desk: Desk, other: Desk
) -> None:
    for _ in range(3):
        desk.submit()
    claims = desk.claimed()
    theirs = other.running()
    culprit = claims[1].seq
    assert (
        desk.run(
            leases.fail_worker(
                desk.worker, "worker lost: killed by signal 9", hung=True, culprit=culprit
            )
        )
        == 3
    )
    for claim in claims:
        charged = claim.seq == culprit
        row = desk.row("delayed" if charged else "ready", claim.seq)
        assert row["retries"] == int(charged)
        kept = desk.row("attempts", claim.seq)
        assert kept["outcome"] == "lost"
        why = "" if charged else "; not charged: another job was the cause"
        assert kept["error"]["message"] == f"worker lost: killed by signal 9{why}"
    assert desk.places(theirs.seq) == ["lease"]
    assert desk.slots_agree()


def test_worker_buried_without_known_culprit_charges_none_of_several(desk: Desk) -> None:
    for _ in range(3):
        desk.submit()
    claims = desk.claimed()
    assert desk.run(leases.fail_worker(desk.worker, "worker lost", hung=False, culprit=None)) == 3
    assert all(desk.row("delayed", c.seq)["retries"] == 0 for c in claims)
    assert desk.run(leases.fail_worker(desk.worker, "worker lost", hung=False, culprit=None)) == 0


def test_counters_of_workers_that_stopped_are_swept_only_when_empty(
    desk: Desk, another: Callable[[], Desk]
) -> None:
    idle, busy = another(), another()
    for one in (idle, busy):
        one.run(
            workers.register(
                WorkerInfo(
                    id=one.worker,
                    name="n",
                    host="h",
                    pid=1,
                    code="0",
                    job_types=["t"],
                    lanes=None,
                    concurrency=1,
                )
            )
        )
        one.running()
    idle.run(leases.settle([leases.Verdict(_only_claim(desk, idle.worker), "finish")]))
    for one in (idle, busy):
        one.run(workers.stop(one.worker))
    assert desk.rows("select worker_id, running from laneway.slot_usage") == [(busy.worker, 1)]
    desk.do("update laneway.workers set stopped_at = clock_timestamp() - interval '91 days'")
    desk.run(workers.sweep(desk.worker))
    assert len(desk.rows("select id from laneway.workers")) == 2, "only the leader sweeps"
    assert desk.run(leases.watch(desk.worker, 60.0)).epoch is not None
    desk.run(workers.sweep(desk.worker))
    assert desk.rows("select id from laneway.workers") == [(busy.worker,)]
    assert desk.slots_agree()


def _only_claim(desk: Desk, worker: UUID) -> Claim:
    seq, attempt = desk.one("select seq, attempt from laneway.lease where worker_id = %s", worker)
    return Claim(seq, desk.id_of(seq), attempt)


def _wait_over_and_claim(desk: Desk) -> list[Claim]:
    desk.do("update laneway.delayed set run_at = clock_timestamp()")
    desk.do("select laneway.peek('{t}')")
    return desk.claimed()


def test_errors_of_the_watchdog_are_plain_json(desk: Desk) -> None:
    claim = desk.running(max_retries=0)
    desk.do(LAPSE)
    watch(desk)
    told = desk.row("outcome", claim.seq)["error"]
    assert set(told) == {"type", "message", "public"}
    assert json.loads(json.dumps(told)) == told


def test_a_hung_process_without_a_known_culprit_is_charged_for_its_threads_only(
    desk: Desk,
) -> None:
    desk.do(
        "insert into laneway.job_types (name, isolation) values ('t', 'async'), ('th', 'thread')"
    )
    desk.submit()
    desk.submit(job_type="th")
    on_loop, in_thread = desk.claimed(types=("t", "th"))
    dead = leases.fail_worker(desk.worker, "worker lost: hung", hung=True, culprit=None)
    assert desk.run(dead) == 2
    assert desk.row("ready", on_loop.seq)["retries"] == 0
    assert desk.row("delayed", in_thread.seq)["retries"] == 1
