"""Laws of analysis and approval in SQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.domain.approval import Analysis, Approval, analysis_of, status_after_analysis
from laneway.domain.claim import Claim
from laneway.errors import InvalidInput
from laneway.store import approvals, caller_transaction, jobs, lanes, leases, steps
from laneway.store.leases import Report
from tests.store.approvals import (
    EUR,
    analyzed,
    analyzing,
    approve,
    awaiting,
    publish,
    reject,
    status,
)
from tests.support.store_client import StoreClient, error

NEW_PAYLOAD = "update laneway.jobs set payload = '{\"x\": 2}' where seq = %s"
NEW_ANALYSIS = "update laneway.approvals set analysis = '{}' where seq = %s"
ALWAYS = Approval()


def view(db: StoreClient, seq: int, columns: str) -> Any:
    return db.one(f"select {columns} from laneway.jobs_view where seq = %s", seq)


# -- the way in ---------------------------------------------------------------------------------


def test_type_without_either_is_approved_at_once(db: StoreClient) -> None:
    publish(db)
    seq = db.submit()
    assert view(db, seq, "status, approved_at = created_at, approved_by") == (
        "approved", True, None,
    )  # fmt: skip


def test_analysis_runs_at_once_though_the_job_is_for_later(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit(delay=3600.0, concurrency_key="k")
    assert (status(db, seq), db.places(seq)) == ("pending", ["ready"])
    assert view(db, seq, "approved_at, lane") == (None, "default")
    assert db.claimed() == []
    claim = analyzing(db)
    assert view(db, seq, "status, lane, attempt") == ("pending", "default", 1)
    assert db.row("lease", seq)["concurrency_key"] is None
    assert analyzed(db, claim).status == "approved"
    assert (status(db, seq), db.places(seq)) == ("approved", ["delayed"])
    db.do("update laneway.delayed set run_at = clock_timestamp()")
    db.run(lanes.peek(["t"]))
    assert [c.attempt for c in db.claimed()] == [2]
    assert db.slots_agree()


def test_analysis_result_is_shown_and_its_attempt_stored(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = awaiting(db)
    assert view(db, seq, "analysis") == EUR.to_dict()
    assert db.rows("select attempt, outcome, lane from laneway.attempts") == [
        (1, "analyzed", "analysis")
    ]
    assert db.row("approvals", seq)["cost"] == 7
    waits = view(db, seq, "approved_at, extract(epoch from expires_at - clock_timestamp())")
    assert waits[0] is None
    assert 86000 < waits[1] <= 86400


def test_type_that_needs_only_an_approval_waits_for_it_from_the_start(db: StoreClient) -> None:
    publish(db, approval=Approval(expires=60))
    seq = db.submit()
    assert db.places(seq) == ["awaiting"]
    row = db.row("awaiting", seq)
    assert (row["expires_at"] - row["since"]).total_seconds() == 60
    assert db.claimed() == []
    assert approve(db, seq, comment="fine").found_in == "awaiting_approval"
    assert view(db, seq, "status, approved_by, expires_at") == ("approved", "ann", None)
    assert len(db.claimed()) == 1


def test_approved_job_waits_for_its_time(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit(delay=3600.0)
    approve(db, seq)
    assert (db.places(seq), db.row("delayed", seq)["sealed"]) == (["delayed"], True)


def test_sql_submits_by_the_same_rules(db: StoreClient) -> None:
    publish(db, "a", ALWAYS, analysis=True)
    publish(db, "b", Approval(two_person=True))
    assert db.one("select status from laneway.submit('a')") == "pending"
    assert db.one("select status from laneway.submit('b', created_by => 'x')") == (
        "awaiting_approval"
    )
    for call in ("laneway.submit('b')", "laneway.submit('c', needs => 'luck')"):
        with pytest.raises(psycopg.Error) as refused:
            db.rows(f"select {call}")
        assert refused.value.sqlstate == "LW001"


@pytest.mark.parametrize(
    "needs,place",
    [("analysis", "pending"), ("approval", "awaiting_approval"), ("both", "pending")],
)
def test_policy_of_submitter_applies_before_publication(
    db: StoreClient, needs: str, place: str
) -> None:
    seq = db.submit("unheard_of", needs=needs)
    assert status(db, seq) == place
    # A retry keeps it too.
    db.cancel(seq)
    assert db.retry(seq).concerns == (
        "unheard_of" if needs == "approval" else analysis_of("unheard_of")
    )
    assert status(db, seq) == place
    # A submitter can require more than the published type.
    publish(db, "lenient")
    assert status(db, db.submit("lenient", needs=needs)) == place


@pytest.mark.parametrize(
    "published",
    [None, {}, {"analysis": True}, {"approval": ALWAYS}, {"analysis": True, "approval": ALWAYS}],
)
def test_job_that_needs_both_is_analysed_first_and_approved_after(
    db: StoreClient, published: dict[str, Any] | None
) -> None:
    """The policy of an older worker does not matter."""
    if published is not None:
        publish(db, **published)
    seq = db.submit(needs="both")
    assert status(db, seq) == "pending"
    # An older worker may also start later.
    publish(db, **{**(published or {}), "approval": None})
    assert analyzed(db, analyzing(db)).status == "awaiting_approval"
    reject(db, seq)
    db.retry(seq)
    assert status(db, seq) == "awaiting_approval"
    approve(db, seq)
    assert [claim.seq for claim in db.claimed()] == [seq]


# -- the analysis is leased and fenced like a run -------------------------------------------------


def test_three_tries_of_the_analysis_then_the_job_fails(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit(max_retries=9, unique_key="k")
    for attempt in (1, 2):
        claim = analyzing(db)
        assert claim.attempt == attempt
        answer = db.settle(claim, "fail", error=error(), delay_s=0.0)
        assert answer is not None
        assert answer.status == "pending"
    assert db.settle(analyzing(db), "fail", error=error(), delay_s=0.0) is not None
    assert view(db, seq, "status, attempt, error ->> 'type', lane, approved_at") == (
        "failed", 3, "Boom", "default", None,
    )  # fmt: skip
    assert db.one("select count(*) from laneway.job_keys") == 0
    # Again from the start: three more.
    assert db.retry(seq) == jobs.FoundState("failed", analysis_of("t"))
    assert view(db, seq, "status, attempt, retries") == ("pending", 3, 0)
    assert analyzing(db).attempt == 4


def test_runs_budget_is_not_spent_by_the_analysis(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit(max_retries=1)
    db.settle(analyzing(db), "fail", error=error(), delay_s=0.0)
    analyzed(db, analyzing(db))
    (claim,) = db.claimed()
    assert claim.attempt == 3
    answer = db.settle(claim, "fail", error=error(), delay_s=0.0)
    assert answer is not None
    assert answer.status == "approved"
    assert view(db, seq, "retries, max_retries") == (1, 1)


def test_lapsed_analysis_is_tried_again_and_the_late_answer_is_void(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = db.submit()
    late = analyzing(db)
    db.do("update laneway.lease set lease_until = clock_timestamp() - interval '1 s'")
    assert db.run(leases.run_watchdog(db.worker, 10)).reclaimed == 1
    db.do("update laneway.delayed set run_at = clock_timestamp()")
    assert db.run(lanes.peek([analysis_of("t")])).promoted == [analysis_of("t")]
    again = analyzing(db)
    assert again.attempt == 2
    assert analyzed(db, late, Analysis(cost=0, currency="EUR")).answer == "fenced"
    assert view(db, seq, "status, analysis") == ("pending", None)
    assert analyzed(db, again).status == "awaiting_approval"
    # A repeated report: the same result and one attempt.
    assert analyzed(db, again)[2:] == ("accepted", "awaiting_approval")
    assert db.slots_agree()


def test_released_or_snoozed_analysis_is_not_charged(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    for kind in ("release", "snooze") * 3:
        answer = db.settle(analyzing(db), kind, delay_s=0.0)
        assert answer is not None
        assert answer.status == "pending"
        db.make_due()
    assert view(db, seq, "status, retries, attempt") == ("pending", 0, 6)


def test_waiting_analysis_is_cancelled_at_once(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit(unique_key="k")
    assert db.cancel(seq) == jobs.FoundState("pending", None, "default")
    assert view(db, seq, "status, approved_at") == ("cancelled", None)
    assert db.claimed(1, [analysis_of("t")], lane="analysis") == []
    assert db.one("select count(*) from laneway.job_keys") == 0
    assert db.retry(seq).concerns == analysis_of("t")
    assert status(db, seq) == "pending"


def test_running_analysis_is_asked_to_stop_and_cannot_lead_to_an_approval(
    db: StoreClient,
) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    claim = analyzing(db)
    assert db.cancel(seq) == jobs.FoundState("pending", db.worker, "default")
    assert view(db, seq, "status, cancel_requested_at is not null") == ("pending", True)
    assert db.heartbeat([claim])[0].answer == "cancel_requested"
    assert analyzed(db, claim)[2:] == ("cancel_requested", "cancelled")
    assert view(db, seq, "status, result, analysis") == ("cancelled", None, None)


def test_new_priority_reaches_the_job_through_its_analysis(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    assert db.run(jobs.reprioritize(db.id_of(seq), 3)).found_in == "pending"
    claim = analyzing(db)
    assert db.run(jobs.reprioritize(db.id_of(seq), 4)).found_in == "pending"
    analyzed(db, claim)
    assert view(db, seq, "priority") == 4


def test_lane_of_analyses_has_slots_of_its_own(db: StoreClient) -> None:
    publish(db, "a", analysis=True)
    publish(db, "b", analysis=True)
    for name in "ababab":
        db.submit(name)
    both = [analysis_of("a"), analysis_of("b")]
    assert len(db.claimed(100, both, lane="analysis")) == 4
    assert db.claim(100, both, lane="analysis").state == "full"
    plain = db.submit("plain")
    assert [c.seq for c in db.claimed(types=["plain"])] == [plain]


def test_analyses_of_a_dead_worker_are_charged(db: StoreClient) -> None:
    """A plain function that blocks the interpreter must not kill workers forever."""
    publish(db, analysis=True)
    seq = db.submit()
    analyzing(db)
    assert db.run(leases.fail_worker(db.worker, "hung", hung=True, culprit=None)) == 1
    assert view(db, seq, "status, retries") == ("pending", 1)


def test_progress_of_analysis_is_not_carried_to_run(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    claim = analyzing(db)
    db.report([Report(claim, done=1.0, checkpoint='{"at": 1}')])
    db.run(steps.save(claim, "fetch", "1", 0.1))
    db.settle(claim, "fail", error=error(), delay_s=0.0)
    (again,) = db.claim(1, [analysis_of("t")], lane="analysis").assignments
    assert again.checkpoint == '{"at": 1}'
    assert db.run(steps.read(again.claim)) == {"fetch": "1"}
    analyzed(db, again.claim)
    (run,) = db.claim().assignments
    assert run.checkpoint is None
    assert db.run(steps.read(run.claim)) == {}
    assert view(db, seq, "progress") is None


def test_analysis_cannot_finish_its_job(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = db.submit()
    claim = analyzing(db)
    with pytest.raises(InvalidInput, match="finish: an analysis"):
        db.run(caller_transaction.finish(claim, "1", 0.1))
    assert status(db, seq) == "pending"


# -- the policy ---------------------------------------------------------------------------------

AMOUNTS = st.one_of(
    st.integers(0, 12),
    st.sampled_from([0.1, 0.5, 4.999, 5.0, 5.001, 1e15]),
    st.decimals(0, 10, places=2),
)
ANALYSES = st.one_of(
    st.just(Analysis()),
    st.builds(Analysis, cost=AMOUNTS, currency=st.sampled_from(["EUR", "USD"])),
    st.builds(Analysis, tokens=st.integers(0, 12)),
)
POLICIES = st.one_of(
    st.none(),
    st.just(ALWAYS),
    st.builds(Approval, below_cost=AMOUNTS, currency=st.sampled_from(["EUR", "USD"])),
    st.builds(Approval, below_tokens=st.integers(0, 12)),
)


def test_status_after_an_analysis_is_the_rules(db: StoreClient) -> None:
    """For any policy and analysis; Python repeats the rule."""

    @given(POLICIES, ANALYSES)
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(policy: Approval | None, analysis: Analysis) -> None:
        publish(db, approval=policy, analysis=True)
        seq = db.submit()
        expected = status_after_analysis(policy, analysis.to_dict())
        assert analyzed(db, analyzing(db), analysis).status == expected
        assert status(db, seq) == expected
        decided = db.run(approvals.decisions(db.id_of(seq)))
        automatic = policy is not None and expected == "approved"
        assert [one.decision for one in decided] == ["automatic"] * automatic
        db.cancel(seq)

    holds()


def test_automatic_approval_is_recorded(db: StoreClient) -> None:
    publish(db, approval=Approval(below_cost=7, currency="EUR"), analysis=True)
    seq = db.submit()
    analyzed(db, analyzing(db))
    assert view(db, seq, "approved_by, approved_at is not null") == ("policy", True)
    (one,) = db.run(approvals.decisions(db.id_of(seq)))
    assert (one.decision, one.decided_by, one.comment) == ("automatic", "policy", "at most 7 EUR")
    assert db.row("ready", seq)["sealed"]


def test_analysis_alone_needs_no_decision(db: StoreClient) -> None:
    publish(db, analysis=True)
    seq = db.submit()
    analyzed(db, analyzing(db), Analysis(cost=10**9, currency="EUR"))
    assert view(db, seq, "status, approved_by, approved_at > created_at") == (
        "approved", None, True,
    )  # fmt: skip
    assert db.run(approvals.decisions(db.id_of(seq))) == []


def test_threshold_is_compared_as_decimals(db: StoreClient) -> None:
    publish(db, approval=Approval(below_cost=Decimal("0.30"), currency="EUR"), analysis=True)
    db.submit()
    assert analyzed(db, analyzing(db), Analysis(cost=0.3, currency="EUR")).status == "approved"
    db.submit()
    too_much = Analysis(cost=0.1 + 0.2, currency="EUR")
    assert analyzed(db, analyzing(db), too_much).status == "awaiting_approval"


# -- decisions ----------------------------------------------------------------------------------


def test_rejected_job_is_cancelled_with_the_reason_and_frees_its_key(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = awaiting(db, unique_key="k")
    assert reject(db, seq, reason="too dear").found_in == "awaiting_approval"
    assert view(db, seq, "status, cancel_by, cancel_reason, approved_at, approved_by") == (
        "cancelled", "ann", "rejected: too dear", None, None,
    )  # fmt: skip
    assert db.one("select count(*) from laneway.job_keys") == 0
    assert db.submit(unique_key="k") != seq
    assert db.claimed() == []


def test_submitter_cannot_give_two_person_approval(db: StoreClient) -> None:
    publish(db, approval=Approval(two_person=True))
    with pytest.raises(InvalidInput, match="created_by: must be given"):
        db.submit()
    seq = db.submit(created_by="ann")
    assert approve(db, seq, "ann")[:2] == ("awaiting_approval", "two_person")
    assert status(db, seq) == "awaiting_approval"
    assert approve(db, seq, "bob").refusal is None
    # A submitter may reject the own job.
    mine = db.submit(created_by="ann")
    assert reject(db, mine, "ann").refusal is None


def test_anonymous_job_cannot_get_two_person_approval(db: StoreClient) -> None:
    seq = db.submit(needs="approval")
    publish(db, approval=Approval(two_person=True))
    assert approve(db, seq, "ann").refusal == "two_person"
    assert reject(db, seq, "ann").refusal is None


def test_seal_binds_approval_to_shown_payload(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = awaiting(db)
    shown = db.run(approvals.sealed(db.id_of(seq)))
    assert shown is not None
    db.do(NEW_PAYLOAD, seq)
    assert approve(db, seq, seal=shown.seal).refusal == "changed"
    assert status(db, seq) == "awaiting_approval"
    now = db.run(approvals.sealed(db.id_of(seq)))
    assert now is not None
    assert approve(db, seq, seal=now.seal).refusal is None
    (one,) = db.run(approvals.decisions(db.id_of(seq)))
    assert one.seal == now.seal


def test_decisions_need_a_name_and_rejections_a_reason(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    for call in ("true, null, 'x'", "false, 'ann', null", "false, 'ann', ''"):
        with pytest.raises(psycopg.Error) as refused:
            db.rows(f"select laneway.decide(%s, {call}, null)", seq)
        assert refused.value.sqlstate == "LW001"
    assert status(db, seq) == "awaiting_approval"


def test_only_a_job_that_waits_for_it_is_decided_about(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    publish(db, "a", ALWAYS, analysis=True)
    assert approve(db, uuid4()).found_in is None
    assert approve(db, db.submit("a")).found_in == "pending"
    seq = db.submit()
    approve(db, seq)
    assert approve(db, seq).found_in == "approved"
    assert reject(db, seq).found_in == "approved"
    (claim,) = db.claimed()
    assert approve(db, seq).found_in == "running"
    db.settle(claim, "finish")
    assert approve(db, seq).found_in == "completed"
    gone = db.submit()
    db.cancel(gone)
    assert (approve(db, gone).found_in, status(db, gone)) == ("cancelled", "cancelled")
    assert db.one("select count(*) from laneway.decisions") == 1


@pytest.mark.parametrize("first", [approve, reject])
def test_second_decision_sees_result_of_first(
    db: StoreClient, other: StoreClient, first: Callable[[StoreClient, int], Any]
) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    db.begin()
    first(db, seq)
    second = other.later(lambda: approve(other, seq, "bob"))
    db.await_blocked(other)
    db.commit()
    assert second.result().found_in == status(db, seq) != "awaiting_approval"
    assert db.rows("select decided_by from laneway.decisions") == [("ann",)]
    assert len(db.places(seq)) == 1


def test_many_at_once_make_one_decision_per_job(
    db: StoreClient, another: Callable[[], StoreClient]
) -> None:
    publish(db, approval=ALWAYS)
    seqs = [db.submit() for _ in range(20)]
    clients = [another() for _ in range(4)]

    def everything(mine: StoreClient) -> int:
        verb = (approve, reject)[clients.index(mine) % 2]
        return sum(verb(mine, seq).found_in == "awaiting_approval" for seq in seqs)

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(everything, clients))
    assert sum(taken) == len(seqs) == db.one("select count(*) from laneway.decisions")
    assert all(len(db.places(seq)) == 1 for seq in seqs)


def test_approval_against_a_cancel_is_one_of_the_two(db: StoreClient, other: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    db.begin()
    assert db.cancel(seq).found_in == "awaiting_approval"
    late = other.later(lambda: approve(other, seq))
    db.await_blocked(other)
    db.commit()
    assert late.result().found_in == "cancelled"
    assert db.one("select count(*) from laneway.decisions") == 0


# -- expiry -------------------------------------------------------------------------------------


def test_undecided_job_is_cancelled_at_expiry(db: StoreClient) -> None:
    publish(db, "quick", Approval(expires=60))
    publish(db, "slow", Approval(expires=3600))
    quick, slow = db.submit("quick", unique_key="k"), db.submit("slow")
    expire = "select laneway.expire_approvals(10, clock_timestamp() + %s::interval)"
    assert db.one(expire, "59 s") == 0
    assert db.one(expire, "61 s") == 1
    assert view(db, quick, "status, cancel_reason") == ("cancelled", "approval expired")
    assert status(db, slow) == "awaiting_approval"
    assert db.rows("select decision, decided_by from laneway.decisions") == [("expired", "laneway")]
    assert db.one("select count(*) from laneway.job_keys") == 0


def test_late_approval_has_no_effect(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    db.do("update laneway.awaiting set expires_at = clock_timestamp()")
    assert approve(db, seq).found_in == "cancelled"
    assert view(db, seq, "status, cancel_reason") == ("cancelled", "approval expired")


def test_expiry_skips_job_under_decision(db: StoreClient, other: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    db.begin()
    approve(db, seq)
    assert other.one("select laneway.expire_approvals(10, 'infinity')") == 0
    db.commit()
    assert status(db, seq) == "approved"


# -- what was approved is what runs ---------------------------------------------------------------


@pytest.mark.parametrize("change", [NEW_PAYLOAD, NEW_ANALYSIS])
@pytest.mark.parametrize("by", ["person", "policy"])
def test_claim_reports_change_after_approval(db: StoreClient, change: str, by: str) -> None:
    policy = ALWAYS if by == "person" else Approval(below_cost=7, currency="EUR")
    publish(db, approval=policy, analysis=True)
    seq = db.submit(payload={"x": 1})
    analyzed(db, analyzing(db))
    if by == "person":
        approve(db, seq)
    db.do(change, seq)
    (found,) = db.claim().assignments
    assert found.changed_since_approval
    assert db.settle(found.claim, "giveup", error=error("NotAsApproved")) is not None
    # Starts again with the analysis: the old one may be of another payload.
    assert db.retry(seq).concerns == analysis_of("t")
    assert status(db, seq) == "pending"
    assert analyzed(db, analyzing(db)).status == (
        "awaiting_approval" if by == "person" else "approved"
    )
    if by == "person":
        approve(db, seq, "bob")
    (again,) = db.claim().assignments
    assert not again.changed_since_approval
    assert [one.decision for one in db.run(approvals.decisions(db.id_of(seq)))] == [
        "approved" if by == "person" else "automatic"
    ] * 2


def test_seal_is_looked_at_before_every_attempt(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    approve(db, seq)
    (claim,) = db.claimed()
    db.settle(claim, "fail", error=error(), delay_s=0.0)
    db.do(NEW_PAYLOAD, seq)
    (found,) = db.claim().assignments
    assert (found.claim.attempt, found.changed_since_approval) == (2, True)
    db.settle(found.claim, "giveup", error=error("NotAsApproved"))
    db.retry(seq)
    assert status(db, seq) == "awaiting_approval"


@pytest.mark.parametrize("decision", [None, "rejected", "expired"])
def test_sealed_job_needs_a_decision_that_lets_it_run(
    db: StoreClient, decision: str | None
) -> None:
    """The seal alone is not an approval: jobs that await a decision have one too."""
    publish(db, approval=ALWAYS)
    seq = db.submit()
    approve(db, seq)
    db.do("update laneway.approvals set decision = %s where seq = %s", decision, seq)
    (found,) = db.claim().assignments
    assert found.changed_since_approval


def test_unchanged_job_is_not_forged_however_odd_its_payload(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    for payload in ({"n": 1e300, "t": "é\u2028\\"}, [1, [2]], "x", {"a": None}):
        seq = db.submit(payload=payload)
        approve(db, seq)
        (found,) = db.claim().assignments
        assert (found.claim.seq, found.changed_since_approval) == (seq, False)


def test_jobs_without_approval_have_no_seal(db: StoreClient) -> None:
    seq = db.submit()
    db.do(NEW_PAYLOAD, seq)
    (found,) = db.claim().assignments
    assert not found.changed_since_approval


def test_sealed_job_keeps_its_seal_while_it_waits_for_a_key(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    first, second = (db.submit(concurrency_key="k") for _ in range(2))
    for seq in (first, second):
        approve(db, seq)
    (claim,) = db.claimed()
    assert claim.seq == first
    assert db.places(second) == ["key_waiters"]
    db.do(NEW_PAYLOAD, second)
    db.run(leases.settle([leases.Verdict(claim, "finish")]))
    (found,) = db.claim().assignments
    assert (found.claim.seq, found.changed_since_approval) == (second, True)


# -- retry --------------------------------------------------------------------------------------


def retried(db: StoreClient, seq: int) -> str:
    assert db.retry(seq).found_in in ("failed", "cancelled")
    return status(db, seq)


def test_rejected_or_expired_job_asks_again(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = awaiting(db)
    reject(db, seq)
    assert retried(db, seq) == "awaiting_approval"
    assert view(db, seq, "analysis is not null, attempt") == (True, 1)
    db.one("select laneway.expire_approvals(10, clock_timestamp() + interval '2 d')")
    assert retried(db, seq) == "awaiting_approval"
    db.cancel(seq)
    assert retried(db, seq) == "awaiting_approval"
    approve(db, seq, "bob", "at last")
    found = [(d.decision, d.decided_by, d.comment)
            for d in db.run(approvals.decisions(db.id_of(seq)))]  # fmt: skip
    assert found == [
        ("rejected", "ann", "too much"),
        ("expired", "laneway", None),
        ("approved", "bob", "at last"),
    ]


def test_retry_of_ended_job_keeps_its_approval(
    db: StoreClient,
) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    approve(db, seq)
    db.settle(db.claimed()[0], "giveup", error=error())
    assert retried(db, seq) == "approved"
    db.cancel(seq)
    assert retried(db, seq) == "approved"
    assert view(db, seq, "approved_by") == "ann"
    (found,) = db.claim().assignments
    assert not found.changed_since_approval
    assert db.one("select count(*) from laneway.decisions") == 1


def test_policy_made_stricter_counts_for_a_retry(db: StoreClient) -> None:
    publish(db)
    seq = db.submit()
    db.settle(db.claimed()[0], "giveup", error=error())
    publish(db, approval=ALWAYS)
    assert retried(db, seq) == "awaiting_approval"


def test_decisions_go_with_their_job(db: StoreClient) -> None:
    publish(db, approval=ALWAYS)
    seq = db.submit()
    reject(db, seq)
    assert db.run(jobs.delete(db.id_of(seq))) is not None
    assert db.one("select count(*) from laneway.decisions") == 0
    assert db.one("select count(*) from laneway.approvals") == 0


def test_late_settle_of_an_old_attempt_touches_nothing(db: StoreClient) -> None:
    publish(db, approval=ALWAYS, analysis=True)
    seq = awaiting(db)
    old = Claim(seq, db.id_of(seq), 1)
    for kind in ("finish", "fail", "cancel"):
        answer = db.settle(old, kind, error=error())
        assert answer is not None
    assert status(db, seq) == "awaiting_approval"


@pytest.mark.parametrize("kind", ["finish", "analyzed"])
def test_verdict_of_the_other_kind_completes_nothing(db: StoreClient, kind: str) -> None:
    """Only an analysis is analyzed, and it never finishes its job."""
    publish(db, approval=ALWAYS, analysis=True)
    seq = db.submit()
    claim = analyzing(db)
    if kind == "analyzed":
        analyzed(db, claim)
        approve(db, seq)
        (claim,) = db.claimed()
    answer = db.settle(claim, kind, result="{}")
    assert answer is not None
    assert answer.status == "failed"
