"""Claiming rows that other transactions change meanwhile: each job is claimed once, or left."""

from __future__ import annotations

from collections.abc import Callable

from laneway.store import jobs
from tests.support.paused_statement import paused_where
from tests.support.store_client import StoreClient

READ = "w.rank <= g.hi"


def test_job_reprioritized_during_a_claim_is_claimed_once_or_left(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    seqs = [db.submit() for _ in range(3)]
    claiming, changing = another(), another()
    with paused_where(db, "claim", READ):
        claimed = claiming.later(claiming.claimed)
        db.await_blocked(claiming)
        changing.run(jobs.reprioritize(db.id_of(seqs[1]), 7))
    found = [claim.seq for claim in claimed.result()]
    assert len(found) == len(set(found))
    assert {seqs[0], seqs[2]} <= set(found)
    for seq in seqs:
        assert db.places(seq) == (["lease"] if seq in found else ["ready"])
    assert db.slots_agree()
    rest = [claim.seq for claim in db.claimed()]
    assert sorted(found + rest) == seqs


def test_job_cancelled_during_a_claim_is_not_claimed(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    seqs = [db.submit() for _ in range(3)]
    claiming, cancelling = another(), another()
    with paused_where(db, "claim", READ):
        claimed = claiming.later(claiming.claimed)
        db.await_blocked(claiming)
        cancelling.cancel(seqs[1])
    assert [claim.seq for claim in claimed.result()] == [seqs[0], seqs[2]]
    assert db.places(seqs[1]) == ["outcome"]
    assert db.slots_agree()


def test_two_claims_at_once_share_no_job(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    seqs = [db.submit() for _ in range(20)]
    one, two = another(), another()
    with paused_where(db, "claim", READ):
        first = one.later(lambda: one.claimed(10))
        second = two.later(lambda: two.claimed(10))
        db.await_blocked(one)
        db.await_blocked(two)
    found = [claim.seq for claim in (*first.result(), *second.result())]
    found += [claim.seq for claim in db.claimed()]
    assert sorted(found) == seqs
    assert db.slots_agree()
