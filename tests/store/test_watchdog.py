"""Leadership by lease and epoch, and the watchdog that reclaims lapsed leases."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.store import leases, workers
from laneway.store.leases import Report, WatchdogPass
from laneway.store.workers import WorkerInfo
from tests.support.store_client import StoreClient

LAPSE = "update laneway.lease set lease_until = clock_timestamp() - interval '1 s'"


def lead(db: StoreClient, holder: UUID, at: str = "0 s", ttl: float = 10) -> int | None:
    """Request leadership at a given time."""
    epoch = db.one(
        "select laneway.take_leadership(%s, %s, timestamptz '2030-01-01' + %s::interval)",
        holder,
        ttl,
        at,
    )
    assert epoch is None or isinstance(epoch, int)
    return epoch


def watch(db: StoreClient, holder: UUID | None = None, limit: int = 200) -> WatchdogPass:
    return db.run(leases.run_watchdog(holder or db.worker, 10, limit))


def test_epoch_grows_with_each_new_holder_and_only_then(db: StoreClient) -> None:
    ann, bob = uuid4(), uuid4()
    assert lead(db, ann) == 1
    assert lead(db, ann, "5 s") == 1
    assert lead(db, ann, "100 s") == 1, "its own term lapsed, and no other process took over"
    assert lead(db, bob, "111 s") == 2
    assert lead(db, ann, "130 s") == 3


def test_second_holder_waits_until_the_first_has_lapsed(db: StoreClient) -> None:
    ann, bob = uuid4(), uuid4()
    lead(db, ann)
    assert lead(db, bob, "9.9 s") is None
    assert lead(db, bob, "10 s") is None
    assert lead(db, bob, "10.001 s") == 2
    assert lead(db, ann, "11 s") is None


def test_leader_resigns_at_once_and_only_its_own_term(db: StoreClient) -> None:
    ann, bob = uuid4(), uuid4()
    lead(db, ann)
    db.run(leases.resign(bob))
    assert lead(db, bob, "1 s") is None
    db.run(leases.resign(ann))
    assert lead(db, bob, "1 s") == 2


def test_two_that_ask_at_once_get_one_leader(db: StoreClient, other: StoreClient) -> None:
    other.begin()
    assert other.run(leases.run_watchdog(other.worker, 10)).epoch == 1
    waiting = db.later(lambda: watch(db))
    other.await_blocked(db)
    other.commit()
    assert waiting.result(20).epoch is None


def test_candidate_that_comes_second_after_a_resignation_waits(
    db: StoreClient, other: StoreClient
) -> None:
    """It still sees the end of the old term, which is minus infinity."""
    watch(db)
    db.run(leases.resign(db.worker))
    other.begin()
    assert watch(other, uuid4()).epoch == 2
    waiting = db.later(lambda: watch(db, uuid4()))
    other.await_blocked(db)
    other.commit()
    answer = waiting.result(20)
    assert (answer.epoch, answer.next_s) == (None, None)


def test_only_leader_reclaims(db: StoreClient) -> None:
    claim = db.running()
    db.do(LAPSE)
    assert watch(db, uuid4()).reclaimed == 1
    (claim,) = _wait_over_and_claim(db)
    db.do(LAPSE)
    answer = watch(db, uuid4())
    assert (answer.epoch, answer.reclaimed, answer.more) == (None, 0, False)
    assert db.places(claim.seq) == ["lease"]


def test_lapsed_lease_is_taken_back_and_charged(db: StoreClient, other: StoreClient) -> None:
    db.run(
        workers.register(
            WorkerInfo(
                id=db.worker,
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
    lapsed, alive = db.running(), other.running()
    db.do(LAPSE + " where seq = %s", lapsed.seq)
    assert watch(db)[:4] == (1, 1, ["t"], False)
    row = db.row("delayed", lapsed.seq)
    assert (row["attempt"], row["retries"]) == (1, 1)
    kept = db.row("attempts", lapsed.seq)
    assert kept["outcome"] == "lost"
    assert kept["error"]["type"] == "WorkerLost"
    assert kept["error"]["message"] == "worker lost: box-7 did not renew the lease of attempt 1"
    assert db.places(alive.seq) == ["lease"]
    assert db.slots_agree()


def test_budget_spent_on_lost_workers_ends_in_failed_worker_lost(db: StoreClient) -> None:
    claim = db.running(max_retries=2, unique_key="k")
    for attempt in (1, 2, 3):
        db.do(LAPSE)
        assert watch(db).reclaimed == 1
        if attempt < 3:
            (claim,) = _wait_over_and_claim(db)
            assert claim.attempt == attempt + 1
    outcome = db.row("outcome", claim.seq)
    assert (outcome["status"], outcome["attempt"], outcome["retries"]) == ("failed", 3, 2)
    assert outcome["error"]["message"].startswith("worker lost")
    assert db.one("select count(*) from laneway.job_keys") == 0
    assert watch(db).reclaimed == 0


def test_lapsed_job_that_was_to_be_cancelled_is_cancelled(db: StoreClient) -> None:
    claim = db.running()
    db.cancel(claim.seq, "ann")
    db.do(LAPSE)
    assert watch(db).reclaimed == 1
    outcome = db.row("outcome", claim.seq)
    assert (outcome["status"], outcome["cancel_by"]) == ("cancelled", "ann")


def test_no_progress_takes_back_the_types_that_ask_for_it_and_no_others(db: StoreClient) -> None:
    db.do(
        "insert into laneway.job_types (name, stale) values ('p', 'progress'), ('h', 'heartbeat')"
    )
    silent, moving, beating = db.running("p"), db.running("p"), db.running("h")
    db.do("update laneway.lease set claimed_at = clock_timestamp() - interval '31 minutes'")
    db.report([Report(moving, done=1)])
    db.heartbeat([silent, moving, beating])
    assert watch(db)[:4] == (1, 1, ["p"], False)
    kept = db.row("attempts", silent.seq)
    assert (kept["outcome"], kept["error"]["type"]) == ("stalled", "Stalled")
    assert kept["error"]["message"] == "no progress for 30 minutes"
    assert db.row("delayed", silent.seq)["retries"] == 1
    db.do("update laneway.lease set last_progress_at = clock_timestamp() - interval '31 minutes'")
    db.heartbeat([moving, beating])
    assert watch(db).reclaimed == 1
    assert db.places(beating.seq) == ["lease"]


def test_pass_reclaims_bounded_number_per_lane_and_reports_rest(
    db: StoreClient,
) -> None:
    for _ in range(7):
        db.submit()
    db.submit("polarity")
    db.claimed()
    db.claimed(types=["polarity"], lane="interactive")
    db.do(LAPSE)
    passes: list[WatchdogPass] = []
    while not passes or passes[-1].more:
        passes.append(watch(db, limit=3))
    assert sum(p.reclaimed for p in passes) == 8
    assert max(p.reclaimed for p in passes) == 3
    assert all(len(p.job_types or []) == 1 for p in passes)
    assert db.one("select count(*) from laneway.lease") == 0


@pytest.mark.parametrize("held", ["default", "interactive"])
def test_locked_lapsed_leases_do_not_hide_others(
    db: StoreClient, other: StoreClient, held: str
) -> None:
    for job_type in ("t", "polarity"):
        db.running(job_type)
    db.do(LAPSE)
    other.begin()
    other.do("select from laneway.lease where lane = %s for update", held)
    db.do("set lock_timeout = '1ms'")
    assert watch(db).reclaimed == 1
    assert watch(db).reclaimed == 0
    other.rollback()
    assert watch(db).reclaimed == 1


def test_lapsed_lease_without_lane_or_worker_is_reclaimed(db: StoreClient) -> None:
    claim = db.running("polarity")
    db.do("delete from laneway.worker_lanes where name = 'interactive'")
    db.do("delete from laneway.workers")
    db.do(LAPSE)
    assert watch(db).reclaimed == 1
    assert db.places(claim.seq) == ["delayed"]


def test_zombie_is_fenced_in_every_write_after_it_was_taken_back(db: StoreClient) -> None:
    zombie = db.running()
    db.do(LAPSE)
    watch(db)
    assert [a.answer for a in db.heartbeat([zombie])] == ["fenced"]
    assert [a.answer for a in db.report([Report(zombie, done=1)])] == ["fenced"]
    for kind in ("finish", "fail", "giveup", "snooze", "release", "cancel"):
        answer = db.settle(zombie, kind)
        assert answer is not None
        assert answer.answer == "fenced"


def test_failed_worker_charges_only_culprit_job(db: StoreClient, other: StoreClient) -> None:
    for _ in range(3):
        db.submit()
    claims = db.claimed()
    theirs = other.running()
    culprit = claims[1].seq
    assert (
        db.run(
            leases.fail_worker(
                db.worker, "worker lost: killed by signal 9", hung=True, culprit=culprit
            )
        )
        == 3
    )
    for claim in claims:
        charged = claim.seq == culprit
        row = db.row("delayed" if charged else "ready", claim.seq)
        assert row["retries"] == int(charged)
        kept = db.row("attempts", claim.seq)
        assert kept["outcome"] == "lost"
        why = "" if charged else "; not charged: another job was the cause"
        assert kept["error"]["message"] == f"worker lost: killed by signal 9{why}"
    assert db.places(theirs.seq) == ["lease"]
    assert db.slots_agree()


def test_failed_worker_without_known_culprit_charges_no_job(db: StoreClient) -> None:
    for _ in range(3):
        db.submit()
    claims = db.claimed()
    assert db.run(leases.fail_worker(db.worker, "worker lost", hung=False, culprit=None)) == 3
    assert all(db.row("delayed", c.seq)["retries"] == 0 for c in claims)
    assert db.run(leases.fail_worker(db.worker, "worker lost", hung=False, culprit=None)) == 0


def test_counters_of_workers_that_stopped_are_swept_only_when_empty(
    db: StoreClient, another: Callable[[], StoreClient]
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
    idle.run(leases.settle([leases.Verdict(_only_claim(db, idle.worker), "finish")]))
    for one in (idle, busy):
        one.run(workers.stop(one.worker))
    assert db.rows("select worker_id, running from laneway.slot_usage") == [(busy.worker, 1)]
    db.do("update laneway.workers set stopped_at = clock_timestamp() - interval '91 days'")
    db.run(workers.sweep(db.worker))
    assert len(db.rows("select id from laneway.workers")) == 2, "only the leader sweeps"
    assert db.run(leases.run_watchdog(db.worker, 60.0)).epoch is not None
    db.run(workers.sweep(db.worker))
    assert db.rows("select id from laneway.workers") == [(busy.worker,)]
    assert db.slots_agree()


def _only_claim(db: StoreClient, worker: UUID) -> Claim:
    seq, attempt = db.one("select seq, attempt from laneway.lease where worker_id = %s", worker)
    return Claim(seq, db.id_of(seq), attempt)


def _wait_over_and_claim(db: StoreClient) -> list[Claim]:
    db.do("update laneway.delayed set run_at = clock_timestamp()")
    db.do("select laneway.peek('{t}')")
    return db.claimed()


def test_errors_of_the_watchdog_are_plain_json(db: StoreClient) -> None:
    claim = db.running(max_retries=0)
    db.do(LAPSE)
    watch(db)
    stored = db.row("outcome", claim.seq)["error"]
    assert set(stored) == {"type", "message", "public"}
    assert json.loads(json.dumps(stored)) == stored


def test_hung_process_without_a_known_culprit_is_charged_for_its_threads_only(
    db: StoreClient,
) -> None:
    db.do("insert into laneway.job_types (name, isolation) values ('t', 'async'), ('th', 'thread')")
    db.submit()
    db.submit(job_type="th")
    on_loop, in_thread = db.claimed(types=("t", "th"))
    dead = leases.fail_worker(db.worker, "worker lost: hung", hung=True, culprit=None)
    assert db.run(dead) == 2
    assert db.row("ready", on_loop.seq)["retries"] == 0
    assert db.row("delayed", in_thread.seq)["retries"] == 1
