"""Laws of limits held outside of jobs: released ones are free, renewed ones are held."""

from __future__ import annotations

from uuid import UUID, uuid4

from laneway.store import call_limits, holds, leases
from tests.support.store_client import StoreClient

LEASE_S = 15.0


def held(db: StoreClient) -> UUID:
    hold_id, holder = uuid4(), holds.Holder(uuid4(), "host")
    assert db.run(holds.hold(hold_id, holder, ["ollama"], 0, LEASE_S)).answer == "granted"
    return hold_id


def test_release_waits_for_a_renewal_under_way(db: StoreClient, other: StoreClient) -> None:
    hold_id = held(db)
    other.begin()
    assert other.run(holds.renew([hold_id], LEASE_S)) == set()
    dropped = db.later(lambda: db.run(holds.drop([hold_id])))
    other.await_blocked(db)
    other.commit()
    assert dropped.result() == 1
    held(db)


def test_renewed_hold_is_not_swept(db: StoreClient) -> None:
    hold_id = held(db)
    assert db.run(holds.renew([hold_id], LEASE_S)) == set()
    # As if a sweep had found it lapsed earlier.
    assert db.one("select laneway.drop_holds(array[%s]::uuid[], true)", hold_id) == 0
    assert db.run(holds.renew([hold_id], LEASE_S)) == set()
    db.do("update laneway.limit_holds set lease_until = now() - interval '1 s'")
    assert db.one("select laneway.sweep_holds()") == 1


def test_holders_are_named_without_ids_of_jobs(db: StoreClient) -> None:
    jobs = [db.running() for _ in range(2)]
    db.do("update laneway.limits set max_concurrent = 3 where name = 'ollama'")
    for job in jobs:
        assert db.run(call_limits.acquire(job, {"ollama": 1})).answer == "granted"
    held(db)
    # A role that may hold a limit may not see the jobs of every workspace.
    (found,) = db.run(holds.find_holders(["ollama"]))
    assert found.holders == ["2 jobs of type t", "a process on host"]


def test_number_of_listed_holders_is_bounded(db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = null where name = 'ollama'")
    for n in range(40):
        holder = holds.Holder(uuid4(), f"host{n}")
        assert db.run(holds.hold(uuid4(), holder, ["ollama"], 0, LEASE_S)).answer == "granted"
    (found,) = db.run(holds.find_holders(["ollama"], most=1_000_000))
    assert len(found.holders) == 20
    assert db.run(holds.find_holders(["ollama"], most=-1))[0].holders == []


def test_leader_learns_of_a_hold_that_lapsed(db: StoreClient) -> None:
    leader = uuid4()
    held(db)
    assert not db.run(leases.run_watchdog(leader, 10.0)).has_duties
    db.do("update laneway.limit_holds set lease_until = now() - interval '1 s'")
    assert db.run(leases.run_watchdog(leader, 10.0)).has_duties
    assert db.one("select laneway.release_self_finished()") == 1
    assert not db.run(leases.run_watchdog(leader, 10.0)).has_duties
