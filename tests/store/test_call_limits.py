"""Limits for one call: exact under their locks, and requested as a total."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from laneway.domain.claim import Claim
from laneway.errors import InvalidInput
from laneway.store import call_limits, leases
from laneway.store.leases import Verdict
from tests.support.store_client import StoreClient

ROUNDS = 25


def used(db: StoreClient) -> dict[str, int]:
    rows = db.rows(
        "select limit_name, sum(running)::integer from laneway.limit_usage group by 1"
        " having sum(running) <> 0"
    )
    return dict(map(tuple, rows))


def end(db: StoreClient, claim: Claim, kind: str = "finish") -> None:
    db.run(leases.settle([Verdict(claim, kind)]))


def leased(db: StoreClient, seq: int) -> list[str]:
    return sorted(db.row("lease", seq)["limits"] or [])


def test_saying_it_twice_takes_it_once(db: StoreClient) -> None:
    claim = db.running()
    for _ in range(2):
        assert db.run(call_limits.acquire(claim, {"ollama": 1, "openai": 2})).answer == "granted"
        assert leased(db, claim.seq) == ["ollama", "openai", "openai"]
    assert used(db) == {"ollama": 1, "openai": 2}
    for _ in range(2):
        assert db.run(call_limits.release(claim, {"openai": 1})) == "given"
        assert leased(db, claim.seq) == ["ollama", "openai"]
    assert db.run(call_limits.release(claim, {"openai": 0, "ollama": 0})) == "given"
    assert leased(db, claim.seq) == []
    assert used(db) == {}


def test_all_or_none(db: StoreClient) -> None:
    first, second = db.running(), db.running()
    assert db.run(call_limits.acquire(first, {"ollama": 1})).answer == "granted"
    full = db.run(call_limits.acquire(second, {"ollama": 1, "openai": 1}))
    assert (full.answer, full.wait_s) == ("full", None)
    assert used(db) == {"ollama": 1}
    end(db, first)
    assert used(db) == {}
    assert db.run(call_limits.acquire(second, {"ollama": 1, "openai": 1})).answer == "granted"


def test_only_the_running_attempt_takes_and_gives(db: StoreClient) -> None:
    old = db.running()
    db.run(call_limits.acquire(old, {"openai": 1}))
    end(db, old, "release")
    assert used(db) == {}
    (new,) = db.claimed(1)
    db.run(call_limits.acquire(new, {"openai": 1}))
    assert db.run(call_limits.acquire(old, {"openai": 1})).answer == "fenced"
    assert db.run(call_limits.release(old, {"openai": 0})) == "fenced"
    db.cancel(new.seq)
    assert db.run(call_limits.acquire(new, {"openai": 2})).answer == "cancel_requested"
    assert used(db) == {"openai": 1}


def test_call_limit_filled_by_enclosing_hold_is_refused(db: StoreClient) -> None:
    """Other holders release the limit, but the enclosing hold waits for the call itself."""
    claim = db.running()
    db.do("insert into laneway.limits (name, max_concurrent) values ('mine', 2)")
    assert db.run(call_limits.acquire(claim, {"mine": 1})).answer == "granted"
    assert db.run(call_limits.acquire(claim, {"mine": 2}, {"mine": 1})).answer == "granted"
    assert db.run(call_limits.acquire(claim, {"mine": 3}, {"mine": 1})).answer == "full"
    with pytest.raises(InvalidInput, match="limit: mine is held by this job already, around"):
        db.run(call_limits.acquire(claim, {"ollama": 1, "mine": 3}, {"mine": 2}))
    db.do("update laneway.limits set max_concurrent = null where name = 'mine'")
    assert db.run(call_limits.acquire(claim, {"mine": 3}, {"mine": 2})).answer == "granted"
    assert used(db) == {"mine": 3}


def test_lease_in_other_hands_is_not_waited_for(db: StoreClient, other: StoreClient) -> None:
    claim = db.running()
    other.begin()
    other.do("select from laneway.lease where seq = %s for update", claim.seq)
    assert db.run(call_limits.acquire(claim, {"openai": 1})).answer == "busy"
    assert db.run(call_limits.release(claim, {"openai": 0})) == "busy"
    other.rollback()


def test_unknown_limit_or_limit_of_type_is_refused(db: StoreClient) -> None:
    claim = db.running()
    with pytest.raises(InvalidInput, match="limit: nowhere does not exist"):
        db.run(call_limits.acquire(claim, {"nowhere": 1, "openai": 1}))
    db.do("insert into laneway.job_types (name, limits) values ('t', '{openai}')")
    with pytest.raises(InvalidInput, match="limit: openai is held for the whole run already"):
        db.run(call_limits.acquire(claim, {"openai": 1}))


def test_concurrent_multi_limit_acquires_never_exceed_or_deadlock(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    """In any order of names, while other jobs end."""
    names = ["anthropic", "ollama", "openai"]
    tops = dict(map(tuple, db.rows("select name, max_concurrent from laneway.limits")))
    seen: list[str] = []

    def work(seat: StoreClient, turn: int) -> None:
        for round_ in range(ROUNDS):
            claim = seat.running(f"t{turn}")
            wants = dict.fromkeys(names[round_ % 3 :] + names[: round_ % 3], 1)
            seen.append(seat.run(call_limits.acquire(claim, wants)).answer)
            for name, n in used(seat).items():
                assert n <= tops[name]
            if round_ % 2:
                assert seat.run(call_limits.release(claim, dict.fromkeys(wants, 0))) == "given"
            end(seat, claim)

    seats = [another() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, seat, turn) for turn, seat in enumerate(seats)]:
            done.result(60)
    assert "granted" in seen
    assert set(seen) <= {"granted", "full", "busy"}
    assert used(db) == {}


def held_for(db: StoreClient, claim: Claim, wants: dict[str, int], longest_s: float) -> None:
    assert db.run(call_limits.acquire_for_remote(claim, wants, {}, longest_s)).answer == "granted"


def test_longest_hold_counts_for_each_hold(db: StoreClient) -> None:
    claim = db.running()
    held_for(db, claim, {"openai": 1}, 3600.0)
    db.do("update laneway.call_holds set until = clock_timestamp()")
    held_for(db, claim, {"openai": 2}, 3600.0)
    ended = db.run(call_limits.end_holds())
    assert (ended.job_id, ended.names) == (db.id_of(claim.seq), ["openai"])
    assert ended.next_s is not None
    assert 3000 < ended.next_s <= 3600
    assert leased(db, claim.seq) == ["openai"]
    assert used(db) == {"openai": 1}
    assert db.run(call_limits.end_holds()).names is None


def test_granted_again_is_held_no_longer(db: StoreClient) -> None:
    claim = db.running()
    for longest_s in (0.0, 3600.0):
        held_for(db, claim, {"openai": 1}, longest_s)
    assert db.run(call_limits.end_holds()).names == ["openai"]
    assert used(db) == {}


def test_hold_without_row_is_not_released(db: StoreClient) -> None:
    claim = db.running()
    # As a server of the previous version does.
    assert db.run(call_limits.acquire(claim, {"openai": 1})).answer == "granted"
    held_for(db, claim, {"openai": 2}, 0.0)
    db.do(
        "delete from laneway.call_holds where id ="
        " (select id from laneway.call_holds order by id limit 1)"
    )
    assert db.run(call_limits.end_holds()).names == ["openai"]
    assert leased(db, claim.seq) == ["openai"]


def test_holds_of_an_ended_attempt_are_forgotten(db: StoreClient) -> None:
    claim = db.running()
    held_for(db, claim, {"openai": 1}, 0.0)
    end(db, claim)
    assert used(db) == {}
    assert db.run(call_limits.end_holds()) == (None, None, None)
    assert db.rows("select 1 from laneway.call_holds") == []


def test_lapsed_hold_of_a_busy_job_waits_for_the_next_look(
    db: StoreClient, other: StoreClient
) -> None:
    busy, free = db.running(), db.running()
    held_for(db, busy, {"openai": 1}, 0.0)
    held_for(db, free, {"openai": 1}, 0.0)
    other.begin()
    other.do(f"select from laneway.lease where seq = {busy.seq} for update")
    assert db.run(call_limits.end_holds()).job_id == db.id_of(free.seq)
    assert db.run(call_limits.end_holds()) == (None, None, 0.0)
    other.commit()
    assert db.run(call_limits.end_holds()).job_id == db.id_of(busy.seq)
