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
from tests.store.desk import Desk, error

NEW_PAYLOAD = "update laneway.jobs set payload = '{\"x\": 2}' where seq = %s"
NEW_ANALYSIS = "update laneway.approvals set analysis = '{}' where seq = %s"
ALWAYS = Approval()


def view(desk: Desk, seq: int, columns: str) -> Any:
    return desk.one(f"select {columns} from laneway.jobs_view where seq = %s", seq)


# -- the way in ---------------------------------------------------------------------------------


def test_a_type_without_either_is_approved_at_once(desk: Desk) -> None:
    publish(desk)
    seq = desk.submit()
    assert view(desk, seq, "status, approved_at = created_at, approved_by") == (
        "approved", True, None,
    )  # fmt: skip


def test_an_analysis_runs_at_once_though_the_job_is_for_later(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit(delay=3600.0, concurrency_key="k")
    assert (status(desk, seq), desk.places(seq)) == ("pending", ["ready"])
    assert view(desk, seq, "approved_at, lane") == (None, "default")
    assert desk.claimed() == []
    claim = analyzing(desk)
    assert view(desk, seq, "status, lane, attempt") == ("pending", "default", 1)
    assert desk.row("lease", seq)["concurrency_key"] is None
    assert analyzed(desk, claim).status == "approved"
    assert (status(desk, seq), desk.places(seq)) == ("approved", ["delayed"])
    desk.do("update laneway.delayed set run_at = clock_timestamp()")
    desk.run(lanes.peek(["t"]))
    assert [c.attempt for c in desk.claimed()] == [2]
    assert desk.slots_agree()


def test_what_an_analysis_said_is_shown_and_its_attempt_kept(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = awaiting(desk)
    assert view(desk, seq, "analysis") == EUR.to_dict()
    assert desk.rows("select attempt, outcome, lane from laneway.attempts") == [
        (1, "analyzed", "analysis")
    ]
    assert desk.row("approvals", seq)["cost"] == 7
    waits = view(desk, seq, "approved_at, extract(epoch from expires_at - clock_timestamp())")
    assert waits[0] is None
    assert 86000 < waits[1] <= 86400


def test_a_type_that_needs_only_an_approval_waits_for_it_from_the_start(desk: Desk) -> None:
    publish(desk, approval=Approval(expires=60))
    seq = desk.submit()
    assert desk.places(seq) == ["awaiting"]
    row = desk.row("awaiting", seq)
    assert (row["expires_at"] - row["since"]).total_seconds() == 60
    assert desk.claimed() == []
    assert approve(desk, seq, comment="fine").found_in == "awaiting_approval"
    assert view(desk, seq, "status, approved_by, expires_at") == ("approved", "ann", None)
    assert len(desk.claimed()) == 1


def test_an_approved_job_waits_for_its_time(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit(delay=3600.0)
    approve(desk, seq)
    assert (desk.places(seq), desk.row("delayed", seq)["sealed"]) == (["delayed"], True)


def test_sql_submits_by_the_same_rules(desk: Desk) -> None:
    publish(desk, "a", ALWAYS, analysis=True)
    publish(desk, "b", Approval(two_person=True))
    assert desk.one("select status from laneway.submit('a')") == "pending"
    assert desk.one("select status from laneway.submit('b', created_by => 'x')") == (
        "awaiting_approval"
    )
    for call in ("laneway.submit('b')", "laneway.submit('c', needs => 'luck')"):
        with pytest.raises(psycopg.Error) as refused:
            desk.rows(f"select {call}")
        assert refused.value.sqlstate == "LW001"


@pytest.mark.parametrize(
    "needs,place",
    [("analysis", "pending"), ("approval", "awaiting_approval"), ("both", "pending")],
)
def test_what_a_submitter_knows_of_its_handler_counts_before_anybody_published_it(
    desk: Desk, needs: str, place: str
) -> None:
    seq = desk.submit("unheard_of", needs=needs)
    assert status(desk, seq) == place
    # Nor does a retry forget it.
    desk.cancel(seq)
    assert desk.retry(seq).concerns == (
        "unheard_of" if needs == "approval" else analysis_of("unheard_of")
    )
    assert status(desk, seq) == place
    # What a published type does not ask for, a submitter still can.
    publish(desk, "lenient")
    assert status(desk, desk.submit("lenient", needs=needs)) == place


@pytest.mark.parametrize(
    "published",
    [None, {}, {"analysis": True}, {"approval": ALWAYS}, {"analysis": True, "approval": ALWAYS}],
)
def test_a_job_that_needs_both_is_analysed_first_and_approved_after(
    desk: Desk, published: dict[str, Any] | None
) -> None:
    """Whatever an older worker has published of its type."""
    if published is not None:
        publish(desk, **published)
    seq = desk.submit(needs="both")
    assert status(desk, seq) == "pending"
    # An older worker may also come later.
    publish(desk, **{**(published or {}), "approval": None})
    assert analyzed(desk, analyzing(desk)).status == "awaiting_approval"
    reject(desk, seq)
    desk.retry(seq)
    assert status(desk, seq) == "awaiting_approval"
    approve(desk, seq)
    assert [claim.seq for claim in desk.claimed()] == [seq]


# -- the analysis is leased and fenced like a run -------------------------------------------------


def test_three_tries_of_the_analysis_then_the_job_fails(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit(max_retries=9, unique_key="k")
    for attempt in (1, 2):
        claim = analyzing(desk)
        assert claim.attempt == attempt
        answer = desk.settle(claim, "fail", error=error(), delay_s=0.0)
        assert answer is not None
        assert answer.status == "pending"
    assert desk.settle(analyzing(desk), "fail", error=error(), delay_s=0.0) is not None
    assert view(desk, seq, "status, attempt, error ->> 'type', lane, approved_at") == (
        "failed", 3, "Boom", "default", None,
    )  # fmt: skip
    assert desk.one("select count(*) from laneway.job_keys") == 0
    # Again from the start: three more.
    assert desk.retry(seq) == jobs.FoundState("failed", analysis_of("t"))
    assert view(desk, seq, "status, attempt, retries") == ("pending", 3, 0)
    assert analyzing(desk).attempt == 4


def test_the_runs_budget_is_not_spent_by_the_analysis(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit(max_retries=1)
    desk.settle(analyzing(desk), "fail", error=error(), delay_s=0.0)
    analyzed(desk, analyzing(desk))
    (claim,) = desk.claimed()
    assert claim.attempt == 3
    answer = desk.settle(claim, "fail", error=error(), delay_s=0.0)
    assert answer is not None
    assert answer.status == "approved"
    assert view(desk, seq, "retries, max_retries") == (1, 1)


def test_a_lapsed_analysis_is_tried_again_and_the_late_answer_is_void(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = desk.submit()
    late = analyzing(desk)
    desk.do("update laneway.lease set lease_until = clock_timestamp() - interval '1 s'")
    assert desk.run(leases.watch(desk.worker, 10)).reclaimed == 1
    desk.do("update laneway.delayed set run_at = clock_timestamp()")
    assert desk.run(lanes.peek([analysis_of("t")])).promoted == [analysis_of("t")]
    again = analyzing(desk)
    assert again.attempt == 2
    assert analyzed(desk, late, Analysis(cost=0, currency="EUR")).answer == "fenced"
    assert view(desk, seq, "status, analysis") == ("pending", None)
    assert analyzed(desk, again).status == "awaiting_approval"
    # Told twice, the same answer and one attempt.
    assert analyzed(desk, again)[2:] == ("accepted", "awaiting_approval")
    assert desk.slots_agree()


def test_a_released_or_snoozed_analysis_is_not_charged(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    for kind in ("release", "snooze") * 3:
        answer = desk.settle(analyzing(desk), kind, delay_s=0.0)
        assert answer is not None
        assert answer.status == "pending"
        desk.make_due()
    assert view(desk, seq, "status, retries, attempt") == ("pending", 0, 6)


def test_a_waiting_analysis_is_cancelled_at_once(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit(unique_key="k")
    assert desk.cancel(seq) == jobs.FoundState("pending", None, "default")
    assert view(desk, seq, "status, approved_at") == ("cancelled", None)
    assert desk.claimed(1, [analysis_of("t")], lane="analysis") == []
    assert desk.one("select count(*) from laneway.job_keys") == 0
    assert desk.retry(seq).concerns == analysis_of("t")
    assert status(desk, seq) == "pending"


def test_a_running_analysis_is_asked_to_stop_and_cannot_lead_to_an_approval(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    claim = analyzing(desk)
    assert desk.cancel(seq) == jobs.FoundState("pending", desk.worker, "default")
    assert view(desk, seq, "status, cancel_requested_at is not null") == ("pending", True)
    assert desk.heartbeat([claim])[0].answer == "cancel_requested"
    assert analyzed(desk, claim)[2:] == ("cancel_requested", "cancelled")
    assert view(desk, seq, "status, result, analysis") == ("cancelled", None, None)


def test_a_new_priority_reaches_the_job_through_its_analysis(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    assert desk.run(jobs.reprioritize(desk.id_of(seq), 3)).found_in == "pending"
    claim = analyzing(desk)
    assert desk.run(jobs.reprioritize(desk.id_of(seq), 4)).found_in == "pending"
    analyzed(desk, claim)
    assert view(desk, seq, "priority") == 4


def test_the_lane_of_analyses_has_slots_of_its_own(desk: Desk) -> None:
    publish(desk, "a", analysis=True)
    publish(desk, "b", analysis=True)
    for name in "ababab":
        desk.submit(name)
    both = [analysis_of("a"), analysis_of("b")]
    assert len(desk.claimed(100, both, lane="analysis")) == 4
    assert desk.claim(100, both, lane="analysis").state == "full"
    plain = desk.submit("plain")
    assert [c.seq for c in desk.claimed(types=["plain"])] == [plain]


def test_the_analyses_of_a_dead_worker_are_charged(desk: Desk) -> None:
    """A plain function that holds the interpreter must not kill workers for ever."""
    publish(desk, analysis=True)
    seq = desk.submit()
    analyzing(desk)
    assert desk.run(leases.fail_worker(desk.worker, "hung", hung=True, culprit=None)) == 1
    assert view(desk, seq, "status, retries") == ("pending", 1)


def test_what_an_analysis_noted_on_its_way_is_not_the_runs(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    claim = analyzing(desk)
    desk.report([Report(claim, done=1.0, checkpoint='{"at": 1}')])
    desk.run(steps.keep(claim, "fetch", "1", 0.1))
    desk.settle(claim, "fail", error=error(), delay_s=0.0)
    (again,) = desk.claim(1, [analysis_of("t")], lane="analysis").assignments
    assert again.checkpoint == '{"at": 1}'
    assert desk.run(steps.read(again.claim)) == {"fetch": "1"}
    analyzed(desk, again.claim)
    (run,) = desk.claim().assignments
    assert run.checkpoint is None
    assert desk.run(steps.read(run.claim)) == {}
    assert view(desk, seq, "progress") is None


def test_an_analysis_cannot_finish_its_job(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = desk.submit()
    claim = analyzing(desk)
    with pytest.raises(InvalidInput, match="finish: an analysis"):
        desk.run(caller_transaction.finish(claim, "1", 0.1))
    assert status(desk, seq) == "pending"


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


def test_the_status_after_an_analysis_is_the_rules(desk: Desk) -> None:
    """For any policy and analysis; the rule is written once more in Python."""

    @given(POLICIES, ANALYSES)
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(policy: Approval | None, said: Analysis) -> None:
        publish(desk, approval=policy, analysis=True)
        seq = desk.submit()
        expected = status_after_analysis(policy, said.to_dict())
        assert analyzed(desk, analyzing(desk), said).status == expected
        assert status(desk, seq) == expected
        decided = desk.run(approvals.decisions(desk.id_of(seq)))
        automatic = policy is not None and expected == "approved"
        assert [one.decision for one in decided] == ["automatic"] * automatic
        desk.cancel(seq)

    holds()


def test_what_a_policy_let_through_says_so(desk: Desk) -> None:
    publish(desk, approval=Approval(below_cost=7, currency="EUR"), analysis=True)
    seq = desk.submit()
    analyzed(desk, analyzing(desk))
    assert view(desk, seq, "approved_by, approved_at is not null") == ("policy", True)
    (one,) = desk.run(approvals.decisions(desk.id_of(seq)))
    assert (one.decision, one.decided_by, one.comment) == ("automatic", "policy", "at most 7 EUR")
    assert desk.row("ready", seq)["sealed"]


def test_an_analysis_alone_needs_no_decision(desk: Desk) -> None:
    publish(desk, analysis=True)
    seq = desk.submit()
    analyzed(desk, analyzing(desk), Analysis(cost=10**9, currency="EUR"))
    assert view(desk, seq, "status, approved_by, approved_at > created_at") == (
        "approved", None, True,
    )  # fmt: skip
    assert desk.run(approvals.decisions(desk.id_of(seq))) == []


def test_a_threshold_is_compared_as_decimals(desk: Desk) -> None:
    publish(desk, approval=Approval(below_cost=Decimal("0.30"), currency="EUR"), analysis=True)
    desk.submit()
    assert analyzed(desk, analyzing(desk), Analysis(cost=0.3, currency="EUR")).status == "approved"
    desk.submit()
    too_much = Analysis(cost=0.1 + 0.2, currency="EUR")
    assert analyzed(desk, analyzing(desk), too_much).status == "awaiting_approval"


# -- decisions ----------------------------------------------------------------------------------


def test_a_rejected_job_is_cancelled_with_the_reason_and_frees_its_key(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = awaiting(desk, unique_key="k")
    assert reject(desk, seq, reason="too dear").found_in == "awaiting_approval"
    assert view(desk, seq, "status, cancel_by, cancel_reason, approved_at, approved_by") == (
        "cancelled", "ann", "rejected: too dear", None, None,
    )  # fmt: skip
    assert desk.one("select count(*) from laneway.job_keys") == 0
    assert desk.submit(unique_key="k") != seq
    assert desk.claimed() == []


def test_who_submitted_cannot_approve_where_two_people_must_agree(desk: Desk) -> None:
    publish(desk, approval=Approval(two_person=True))
    with pytest.raises(InvalidInput, match="created_by: must be given"):
        desk.submit()
    seq = desk.submit(created_by="ann")
    assert approve(desk, seq, "ann")[:2] == ("awaiting_approval", "two_person")
    assert status(desk, seq) == "awaiting_approval"
    assert approve(desk, seq, "bob").refusal is None
    # One's own job may be rejected.
    mine = desk.submit(created_by="ann")
    assert reject(desk, mine, "ann").refusal is None


def test_a_job_of_nobody_is_approved_by_nobody_where_two_must_agree(desk: Desk) -> None:
    seq = desk.submit(needs="approval")
    publish(desk, approval=Approval(two_person=True))
    assert approve(desk, seq, "ann").refusal == "two_person"
    assert reject(desk, seq, "ann").refusal is None


def test_a_seal_binds_the_approval_to_what_was_shown(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = awaiting(desk)
    shown = desk.run(approvals.sealed(desk.id_of(seq)))
    assert shown is not None
    desk.do(NEW_PAYLOAD, seq)
    assert approve(desk, seq, seal=shown.seal).refusal == "changed"
    assert status(desk, seq) == "awaiting_approval"
    now = desk.run(approvals.sealed(desk.id_of(seq)))
    assert now is not None
    assert approve(desk, seq, seal=now.seal).refusal is None
    (one,) = desk.run(approvals.decisions(desk.id_of(seq)))
    assert one.seal == now.seal


def test_decisions_need_a_name_and_rejections_a_reason(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    for call in ("true, null, 'x'", "false, 'ann', null", "false, 'ann', ''"):
        with pytest.raises(psycopg.Error) as refused:
            desk.rows(f"select laneway.decide(%s, {call}, null)", seq)
        assert refused.value.sqlstate == "LW001"
    assert status(desk, seq) == "awaiting_approval"


def test_only_a_job_that_waits_for_it_is_decided_about(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    publish(desk, "a", ALWAYS, analysis=True)
    assert approve(desk, uuid4()).found_in is None
    assert approve(desk, desk.submit("a")).found_in == "pending"
    seq = desk.submit()
    approve(desk, seq)
    assert approve(desk, seq).found_in == "approved"
    assert reject(desk, seq).found_in == "approved"
    (claim,) = desk.claimed()
    assert approve(desk, seq).found_in == "running"
    desk.settle(claim, "finish")
    assert approve(desk, seq).found_in == "completed"
    gone = desk.submit()
    desk.cancel(gone)
    assert (approve(desk, gone).found_in, status(desk, gone)) == ("cancelled", "cancelled")
    assert desk.one("select count(*) from laneway.decisions") == 1


@pytest.mark.parametrize("first", [approve, reject])
def test_of_two_who_decide_the_second_meets_what_the_first_made_of_it(
    desk: Desk, other: Desk, first: Callable[[Desk, int], Any]
) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    desk.begin()
    first(desk, seq)
    second = other.later(lambda: approve(other, seq, "bob"))
    desk.await_blocked(other)
    desk.commit()
    assert second.result().found_in == status(desk, seq) != "awaiting_approval"
    assert desk.rows("select decided_by from laneway.decisions") == [("ann",)]
    assert len(desk.places(seq)) == 1


def test_many_at_once_make_one_decision_per_job(desk: Desk, another: Callable[[], Desk]) -> None:
    publish(desk, approval=ALWAYS)
    seqs = [desk.submit() for _ in range(20)]
    desks = [another() for _ in range(4)]

    def everything(mine: Desk) -> int:
        verb = (approve, reject)[desks.index(mine) % 2]
        return sum(verb(mine, seq).found_in == "awaiting_approval" for seq in seqs)

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(everything, desks))
    assert sum(taken) == len(seqs) == desk.one("select count(*) from laneway.decisions")
    assert all(len(desk.places(seq)) == 1 for seq in seqs)


def test_an_approval_against_a_cancel_is_one_of_the_two(desk: Desk, other: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    desk.begin()
    assert desk.cancel(seq).found_in == "awaiting_approval"
    late = other.later(lambda: approve(other, seq))
    desk.await_blocked(other)
    desk.commit()
    assert late.result().found_in == "cancelled"
    assert desk.one("select count(*) from laneway.decisions") == 0


# -- expiry -------------------------------------------------------------------------------------


def test_what_nobody_decided_about_in_time_is_cancelled(desk: Desk) -> None:
    publish(desk, "quick", Approval(expires=60))
    publish(desk, "slow", Approval(expires=3600))
    quick, slow = desk.submit("quick", unique_key="k"), desk.submit("slow")
    expire = "select laneway.expire_approvals(10, clock_timestamp() + %s::interval)"
    assert desk.one(expire, "59 s") == 0
    assert desk.one(expire, "61 s") == 1
    assert view(desk, quick, "status, cancel_reason") == ("cancelled", "approval expired")
    assert status(desk, slow) == "awaiting_approval"
    assert desk.rows("select decision, decided_by from laneway.decisions") == [
        ("expired", "laneway")
    ]
    assert desk.one("select count(*) from laneway.job_keys") == 0


def test_an_approval_that_comes_too_late_is_none(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    desk.do("update laneway.awaiting set expires_at = clock_timestamp()")
    assert approve(desk, seq).found_in == "cancelled"
    assert view(desk, seq, "status, cancel_reason") == ("cancelled", "approval expired")


def test_expiry_leaves_a_job_that_somebody_decides_about(desk: Desk, other: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    desk.begin()
    approve(desk, seq)
    assert other.one("select laneway.expire_approvals(10, 'infinity')") == 0
    desk.commit()
    assert status(desk, seq) == "approved"


# -- what was approved is what runs ---------------------------------------------------------------


@pytest.mark.parametrize("change", [NEW_PAYLOAD, NEW_ANALYSIS])
@pytest.mark.parametrize("by", ["person", "policy"])
def test_what_changed_after_its_approval_is_told_at_the_claim(
    desk: Desk, change: str, by: str
) -> None:
    policy = ALWAYS if by == "person" else Approval(below_cost=7, currency="EUR")
    publish(desk, approval=policy, analysis=True)
    seq = desk.submit(payload={"x": 1})
    analyzed(desk, analyzing(desk))
    if by == "person":
        approve(desk, seq)
    desk.do(change, seq)
    (found,) = desk.claim().assignments
    assert found.changed_since_approval
    assert desk.settle(found.claim, "giveup", error=error("NotAsApproved")) is not None
    # Asked again from the start: what the analysis said may be of another payload.
    assert desk.retry(seq).concerns == analysis_of("t")
    assert status(desk, seq) == "pending"
    assert analyzed(desk, analyzing(desk)).status == (
        "awaiting_approval" if by == "person" else "approved"
    )
    if by == "person":
        approve(desk, seq, "bob")
    (again,) = desk.claim().assignments
    assert not again.changed_since_approval
    assert [one.decision for one in desk.run(approvals.decisions(desk.id_of(seq)))] == [
        "approved" if by == "person" else "automatic"
    ] * 2


def test_the_seal_is_looked_at_before_every_attempt(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    approve(desk, seq)
    (claim,) = desk.claimed()
    desk.settle(claim, "fail", error=error(), delay_s=0.0)
    desk.do(NEW_PAYLOAD, seq)
    (found,) = desk.claim().assignments
    assert (found.claim.attempt, found.changed_since_approval) == (2, True)
    desk.settle(found.claim, "giveup", error=error("NotAsApproved"))
    desk.retry(seq)
    assert status(desk, seq) == "awaiting_approval"


@pytest.mark.parametrize("decision", [None, "rejected", "expired"])
def test_sealed_job_needs_a_decision_that_lets_it_run(desk: Desk, decision: str | None) -> None:
    """The seal alone is no approval: it fits what waits for a decision, too."""
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    approve(desk, seq)
    desk.do("update laneway.approvals set decision = %s where seq = %s", decision, seq)
    (found,) = desk.claim().assignments
    assert found.changed_since_approval


def test_an_unchanged_job_is_not_forged_however_odd_its_payload(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    for payload in ({"n": 1e300, "t": "é\u2028\\"}, [1, [2]], "x", {"a": None}):
        seq = desk.submit(payload=payload)
        approve(desk, seq)
        (found,) = desk.claim().assignments
        assert (found.claim.seq, found.changed_since_approval) == (seq, False)


def test_jobs_nobody_had_to_approve_have_no_seal(desk: Desk) -> None:
    seq = desk.submit()
    desk.do(NEW_PAYLOAD, seq)
    (found,) = desk.claim().assignments
    assert not found.changed_since_approval


def test_a_sealed_job_keeps_its_seal_while_it_waits_for_a_key(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    first, second = (desk.submit(concurrency_key="k") for _ in range(2))
    for seq in (first, second):
        approve(desk, seq)
    (claim,) = desk.claimed()
    assert claim.seq == first
    assert desk.places(second) == ["key_waiters"]
    desk.do(NEW_PAYLOAD, second)
    desk.run(leases.settle([leases.Verdict(claim, "finish")]))
    (found,) = desk.claim().assignments
    assert (found.claim.seq, found.changed_since_approval) == (second, True)


# -- retry --------------------------------------------------------------------------------------


def retried(desk: Desk, seq: int) -> str:
    assert desk.retry(seq).found_in in ("failed", "cancelled")
    return status(desk, seq)


def test_a_rejected_or_expired_job_asks_again(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = awaiting(desk)
    reject(desk, seq)
    assert retried(desk, seq) == "awaiting_approval"
    assert view(desk, seq, "analysis is not null, attempt") == (True, 1)
    desk.one("select laneway.expire_approvals(10, clock_timestamp() + interval '2 d')")
    assert retried(desk, seq) == "awaiting_approval"
    desk.cancel(seq)
    assert retried(desk, seq) == "awaiting_approval"
    approve(desk, seq, "bob", "at last")
    told = [(d.decision, d.decided_by, d.comment)
            for d in desk.run(approvals.decisions(desk.id_of(seq)))]  # fmt: skip
    assert told == [
        ("rejected", "ann", "too much"),
        ("expired", "laneway", None),
        ("approved", "bob", "at last"),
    ]


def test_an_approved_job_that_failed_or_was_cancelled_runs_again_by_the_same_approval(
    desk: Desk,
) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    approve(desk, seq)
    desk.settle(desk.claimed()[0], "giveup", error=error())
    assert retried(desk, seq) == "approved"
    desk.cancel(seq)
    assert retried(desk, seq) == "approved"
    assert view(desk, seq, "approved_by") == "ann"
    (found,) = desk.claim().assignments
    assert not found.changed_since_approval
    assert desk.one("select count(*) from laneway.decisions") == 1


def test_a_policy_made_stricter_counts_for_a_retry(desk: Desk) -> None:
    publish(desk)
    seq = desk.submit()
    desk.settle(desk.claimed()[0], "giveup", error=error())
    publish(desk, approval=ALWAYS)
    assert retried(desk, seq) == "awaiting_approval"


def test_decisions_go_with_their_job(desk: Desk) -> None:
    publish(desk, approval=ALWAYS)
    seq = desk.submit()
    reject(desk, seq)
    assert desk.run(jobs.delete(desk.id_of(seq))) is not None
    assert desk.one("select count(*) from laneway.decisions") == 0
    assert desk.one("select count(*) from laneway.approvals") == 0


def test_a_late_settle_of_an_old_attempt_touches_nothing(desk: Desk) -> None:
    publish(desk, approval=ALWAYS, analysis=True)
    seq = awaiting(desk)
    old = Claim(seq, desk.id_of(seq), 1)
    for kind in ("finish", "fail", "cancel"):
        answer = desk.settle(old, kind, error=error())
        assert answer is not None
    assert status(desk, seq) == "awaiting_approval"


@pytest.mark.parametrize("kind", ["finish", "analyzed"])
def test_a_verdict_of_the_other_kind_completes_nothing(desk: Desk, kind: str) -> None:
    """Only an analysis is analyzed, and it never finishes its job."""
    publish(desk, approval=ALWAYS, analysis=True)
    seq = desk.submit()
    claim = analyzing(desk)
    if kind == "analyzed":
        analyzed(desk, claim)
        approve(desk, seq)
        (claim,) = desk.claimed()
    answer = desk.settle(claim, kind, result="{}")
    assert answer is not None
    assert answer.status == "failed"
