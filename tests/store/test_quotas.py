"""Laws of the counters of waiting jobs per principal."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from laneway.domain.actor import Actor
from laneway.domain.bounds import USUAL, Bounds
from laneway.domain.job import NewJob, new_job_id
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.store import grouped_submit, leases, quotas, retention
from laneway.store.quotas import Quota
from laneway.store.retention import LeaderTerm
from tests.support.store_client import StoreClient


def submit(
    db: StoreClient, quota: Quota, types: Sequence[str] = ("t",), payload: str = "{}"
) -> None:
    actor = Actor("ann", principal_id=quota.principal_id)
    new = [NewJob(id=new_job_id(), job_type=name, payload=payload) for name in types]
    db.run(grouped_submit.submit([(job, actor, quota) for job in new]))


def counted(db: StoreClient, principal: UUID, what: str = "jobs") -> int:
    total = f"select sum({what}) from laneway.queue_usage where principal_id = %s"
    return int(db.one(total, principal))


def rested(db: StoreClient) -> None:
    """The pause between two sweeps is over."""
    db.do("update laneway.queue_usage set swept_at = '2020-01-01'")


def lead(db: StoreClient) -> LeaderTerm:
    epoch = db.run(leases.run_watchdog(db.worker, 600)).epoch
    assert epoch is not None
    return LeaderTerm(db.worker, epoch)


def waiting(db: StoreClient, principal: UUID, count: int) -> None:
    """Counters of deleted jobs, as if they waited."""
    db.do(
        "insert into laneway.queued_by select %s, 1000000 + g, 1 from generate_series(1, %s) g",
        principal,
        count,
    )
    db.do(
        # A submit before may have chosen the same slot.
        "insert into laneway.queue_usage as u (principal_id, slot, jobs, bytes)"
        " values (%s, 1, %s, %s) on conflict (principal_id, slot, place)"
        " do update set jobs = u.jobs + excluded.jobs, bytes = u.bytes + excluded.bytes",
        principal,
        count,
        count,
    )


def test_refused_jobs_are_not_written(db: StoreClient) -> None:
    quota = Quota(uuid4(), Bounds(max_queued=2))
    submit(db, quota, ["t", "t"])
    number = "select last_value from laneway.jobs_seq_seq"
    before = db.one(number)
    with pytest.raises(QuotaExceeded) as refused:
        submit(db, quota)
    assert (refused.value.bound, refused.value.limit) == ("max_queued", 2)
    quota = Quota(uuid4(), Bounds(max_types=1))
    with pytest.raises(InvalidInput, match="max_types"):
        submit(db, quota, ["a", "b"])
    assert db.one(number) == before


def test_bytes_of_payloads_are_counted_and_not_characters(db: StoreClient) -> None:
    quota = Quota(uuid4(), USUAL)
    submit(db, quota, payload='"' + "\N{SNOWMAN}" * 100 + '"')
    assert counted(db, quota.principal_id, "bytes") == 302


def test_job_types_used_long_ago_make_room_for_no_more_than_themselves(db: StoreClient) -> None:
    quota = Quota(uuid4(), Bounds(max_types=2))
    db.do(
        "insert into laneway.unpublished_types select %s, 'old' || g, now() - interval '40 days'"
        " from generate_series(1, 9) g",
        quota.principal_id,
    )
    names = ["a", "b", "c", "d"]
    ids = [db.id_of(db.submit(name)) for name in names]
    with pytest.raises(InvalidInput, match="max_types"):
        db.run(quotas.charge(quota, ids))
    db.run(quotas.charge(quota, ids[:2]))
    with pytest.raises(InvalidInput, match="max_types"):
        submit(db, quota, ["c"])


def test_sweep_looks_at_a_portion_and_goes_on_from_there(db: StoreClient) -> None:
    ann = uuid4()
    waiting(db, ann, 15_000)
    assert db.run(quotas.sweep(ann)) == 10_000
    assert db.run(quotas.sweep(ann)) == 0
    assert counted(db, ann) == 5_000
    rested(db)
    assert db.run(quotas.sweep(ann)) == 5_000
    assert counted(db, ann) == 0


def test_jobs_that_wait_do_not_hide_others_from_the_next_sweep(db: StoreClient) -> None:
    quota = Quota(uuid4(), USUAL)
    submit(db, quota, ["t"] * 3)
    waiting(db, quota.principal_id, 2)
    sweep = "select laneway.sweep_queued(%s, 3)"
    assert db.one(sweep, quota.principal_id) == 0
    rested(db)
    assert db.one(sweep, quota.principal_id) == 2


def test_sweep_before_clock_was_set_back_blocks_no_waiter(db: StoreClient) -> None:
    ann = uuid4()
    waiting(db, ann, 1)
    db.run(quotas.sweep(ann))
    waiting_again = "insert into laneway.queued_by values (%s, 1000009, 1)"
    db.do(waiting_again, ann)
    db.do("update laneway.queue_usage set swept_at = now() + interval '1 day'")
    assert db.run(quotas.sweep(ann)) == 1


def test_sweep_that_finds_nothing_mends_the_counters(db: StoreClient) -> None:
    quota = Quota(uuid4(), Bounds(max_queued=3))
    submit(db, quota, ["t"] * 3)
    db.do("truncate laneway.queued_by")
    with pytest.raises(QuotaExceeded):
        submit(db, quota)
    assert db.run(quotas.sweep(quota.principal_id)) == 3
    submit(db, quota, ["t"] * 3)
    assert counted(db, quota.principal_id) == 3


@pytest.mark.parametrize("lost", ["queued_by", "queue_usage"])
def test_leader_mends_the_counters(db: StoreClient, lost: str) -> None:
    quota = Quota(uuid4(), Bounds(max_queued=3))
    submit(db, quota, ["t"] * 3)
    term = lead(db)
    assert db.run(retention.recount_usage(term)) == 0
    db.do(f"truncate laneway.{lost}")
    assert db.run(retention.recount_usage(term)) == 1
    assert db.run(retention.recount_usage(term)) == 0
    assert counted(db, quota.principal_id) == db.one("select count(*) from laneway.queued_by")


def test_retention_deletes_request_counters(db: StoreClient) -> None:
    people = [uuid4() for _ in range(3)]
    for each in people:
        waiting(db, each, 5)
    db.do(
        "insert into laneway.unpublished_types values (%s, 'old', now() - interval '40 days')",
        people[0],
    )
    assert db.run(retention.prune_records(lead(db))) == 16
    left = "select count(*) from laneway.queued_by"
    assert (db.one(left), sum(counted(db, each) for each in people)) == (0, 0)


def test_counters_of_several_principals_are_locked_in_their_order(
    db: StoreClient, dsn: str
) -> None:
    low, high = (Quota(UUID(int=n), USUAL) for n in (1, 2))
    actors = {each.principal_id: Actor("a", principal_id=each.principal_id) for each in (low, high)}

    def submit_both() -> int:
        new = [(NewJob(id=new_job_id(), job_type="t"), each) for each in (high, low, high, low)]
        some = [(job, actors[each.principal_id], each) for job, each in new]
        return len(other.run(grouped_submit.submit(some)))

    with StoreClient(dsn) as other:
        submit_both()
        db.begin()
        locked = "select from laneway.queue_usage where principal_id = %s for update"
        db.rows(locked, low.principal_id)
        blocked = other.later(submit_both)
        db.await_blocked(other)
        db.rows(f"{locked} nowait", high.principal_id)
        db.commit()
        assert blocked.result(60) == 4
