"""Laws of limits held outside of jobs: what is given back is free, and what is renewed is held."""

from __future__ import annotations

from uuid import UUID, uuid4

from laneway.store import call_limits, holds, leases
from tests.store.desk import Desk

LEASE_S = 15.0


def held(desk: Desk) -> UUID:
    hold_id, holder = uuid4(), holds.Holder(uuid4(), "host")
    assert desk.run(holds.hold(hold_id, holder, ["ollama"], 0, LEASE_S)).answer == "granted"
    return hold_id


def test_release_waits_for_a_renewal_under_way(desk: Desk, other: Desk) -> None:
    hold_id = held(desk)
    other.begin()
    assert other.run(holds.renew([hold_id], LEASE_S)) == set()
    dropped = desk.later(lambda: desk.run(holds.drop([hold_id])))
    other.await_blocked(desk)
    other.commit()
    assert dropped.result() == 1
    held(desk)


def test_renewed_hold_is_not_swept(desk: Desk) -> None:
    hold_id = held(desk)
    assert desk.run(holds.renew([hold_id], LEASE_S)) == set()
    # As by a sweep that found it lapsed before that.
    assert desk.one("select laneway.drop_holds(array[%s]::uuid[], true)", hold_id) == 0
    assert desk.run(holds.renew([hold_id], LEASE_S)) == set()
    desk.do("update laneway.limit_holds set lease_until = now() - interval '1 s'")
    assert desk.one("select laneway.sweep_holds()") == 1


def test_holders_are_named_without_ids_of_jobs(desk: Desk) -> None:
    jobs = [desk.running() for _ in range(2)]
    desk.do("update laneway.limits set max_concurrent = 3 where name = 'ollama'")
    for job in jobs:
        assert desk.run(call_limits.acquire(job, {"ollama": 1})).answer == "granted"
    held(desk)
    # A role that may hold a limit may not see the jobs of every workspace.
    (found,) = desk.run(holds.find_holders(["ollama"]))
    assert found.holders == ["2 jobs of type t", "a process on host"]


def test_holders_are_bounded_whatever_is_asked_for(desk: Desk) -> None:
    desk.do("update laneway.limits set max_concurrent = null where name = 'ollama'")
    for n in range(40):
        holder = holds.Holder(uuid4(), f"host{n}")
        assert desk.run(holds.hold(uuid4(), holder, ["ollama"], 0, LEASE_S)).answer == "granted"
    (found,) = desk.run(holds.find_holders(["ollama"], most=1_000_000))
    assert len(found.holders) == 20
    assert desk.run(holds.find_holders(["ollama"], most=-1))[0].holders == []


def test_leader_learns_of_a_hold_that_lapsed(desk: Desk) -> None:
    leader = uuid4()
    held(desk)
    assert not desk.run(leases.watch(leader, 10.0)).has_duties
    desk.do("update laneway.limit_holds set lease_until = now() - interval '1 s'")
    assert desk.run(leases.watch(leader, 10.0)).has_duties
    assert desk.one("select laneway.fold_finished()") == 1
    assert not desk.run(leases.watch(leader, 10.0)).has_duties
