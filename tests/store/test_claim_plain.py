"""Claiming rows that other transactions change meanwhile: each job is claimed once, or left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from laneway.domain.approval import Approval
from laneway.store import jobs, leases
from laneway.store.leases import ClaimAnswer
from tests.store.approvals import publish
from tests.store.test_limits import limit, needs
from tests.support.paused_statement import paused_where
from tests.support.store_client import StoreClient, whole

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


# -- claims of plain jobs alone, for workers that claim ahead ----------------------------------


def claim_plain(db: StoreClient, room: int = 100, types: Sequence[str] = ("t",)) -> ClaimAnswer:
    ranges = [r for job_type in types for r in whole(job_type)]
    return db.run(
        leases.claim(db.worker, "default", db.version(), room, ranges, [room], plain=True)
    )


def seqs_of(answer: ClaimAnswer) -> list[int]:
    return [one.claim.seq for one in answer.assignments]


def test_plain_claim_takes_plain_jobs_in_order(db: StoreClient) -> None:
    low, high = db.submit(), db.submit(priority=5)
    answer = claim_plain(db)
    assert (seqs_of(answer), answer.refused) == ([high, low], False)
    assert db.slots_agree()


def test_plain_claim_takes_nothing_in_a_bounded_lane(db: StoreClient) -> None:
    seq = db.submit()
    db.do("update laneway.worker_lanes set max_slots = 10 where name = 'default'")
    answer = claim_plain(db)
    assert (answer.state, seqs_of(answer), answer.refused) == ("ok", [], True)
    assert db.places(seq) == ["ready"]


def test_plain_claim_takes_nothing_while_jobs_with_limits_are_due(db: StoreClient) -> None:
    limit(db, "x", max_concurrent=5)
    needs(db, "limited", "x")
    first = db.submit()
    assert seqs_of(claim_plain(db, types=("t", "limited"))) == [first], "none of them is due"
    db.submit("limited", priority=5)
    db.submit()
    answer = claim_plain(db, types=("t", "limited"))
    assert (seqs_of(answer), answer.refused) == ([], True), "it may not overtake the limited one"


def test_plain_claim_leaves_jobs_with_a_key_in_their_place(db: StoreClient) -> None:
    before, keyed, after = db.submit(), db.submit(concurrency_key="k"), db.submit()
    answer = claim_plain(db)
    assert (seqs_of(answer), answer.refused, answer.more) == ([before, after], True, True)
    assert db.places(keyed) == ["ready"]
    assert db.one("select count(*) from laneway.key_holders") == 0
    row = db.row("ready", keyed)
    assert (row["attempt"], row["retries"], row["fresh"]) == (0, 0, False)
    assert db.slots_agree()
    later = db.submit(concurrency_key="k")
    assert [(c.seq, c.attempt) for c in db.claimed()] == [(keyed, 1)]
    assert db.places(later) == ["key_waiters"]


def test_plain_claim_leaves_jobs_that_need_an_approval(db: StoreClient) -> None:
    plain = db.submit()
    unapproved = db.submit("gated")
    publish(db, "gated", Approval())
    answer = claim_plain(db, types=("t", "gated"))
    assert (seqs_of(answer), answer.refused) == ([plain], True)
    assert db.places(unapproved) == ["ready"]
    assert db.claimed(10, ["gated"]) == []
    assert db.places(unapproved) == ["awaiting"]
