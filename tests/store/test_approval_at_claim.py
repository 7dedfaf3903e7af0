"""Laws of the claim: it decides about an approval by the policy then in force."""

from __future__ import annotations

import pytest

from laneway.domain.approval import Approval, analysis_of
from laneway.store import lanes, steps
from laneway.store.leases import Report
from tests.store.approvals import EUR, analyzed, analyzing, approve, publish, status
from tests.store.desk import Desk

ALWAYS = Approval()


def test_job_submitted_before_its_policy_waits_for_approval(desk: Desk) -> None:
    seq = desk.submit(created_by="bob")
    publish(desk, approval=Approval(two_person=True, expires=60))
    assert desk.claimed() == []
    assert (status(desk, seq), desk.places(seq)) == ("awaiting_approval", ["awaiting"])
    row = desk.row("awaiting", seq)
    assert (row["attempt"], (row["expires_at"] - row["since"]).total_seconds()) == (0, 60)
    assert desk.slots_agree()
    approve(desk, seq)
    assert [claim.attempt for claim in desk.claimed()] == [1]


def test_job_submitted_before_its_analysis_is_analysed_first(desk: Desk) -> None:
    seq = desk.submit()
    publish(desk, approval=ALWAYS, analysis=True)
    assert desk.claimed() == []
    assert (status(desk, seq), desk.places(seq)) == ("pending", ["ready"])
    assert analyzed(desk, analyzing(desk)).status == "awaiting_approval"
    approve(desk, seq)
    assert [claim.attempt for claim in desk.claimed()] == [2]


def test_type_with_analysis_and_no_approval_runs_after_its_analysis(desk: Desk) -> None:
    seq = desk.submit()
    publish(desk, analysis=True)
    assert desk.claimed() == []
    assert analyzed(desk, analyzing(desk)).status == "approved"
    assert [claim.seq for claim in desk.claimed()] == [seq]


def test_policy_below_a_cost_approves_job_submitted_before_it(desk: Desk) -> None:
    seq = desk.submit()
    publish(desk, approval=Approval(below_cost=7, currency="EUR"), analysis=True)
    assert desk.claimed() == []
    assert analyzed(desk, analyzing(desk), EUR).status == "approved"
    assert [claim.seq for claim in desk.claimed()] == [seq]


@pytest.mark.parametrize("way", ["sql", "batch", "delayed"])
def test_policy_holds_for_jobs_of_every_way_in(desk: Desk, way: str) -> None:
    if way == "sql":
        desk.rows("select laneway.submit('t')")
    elif way == "batch":
        desk.do(
            "insert into laneway.jobs (seq, id, job_type, payload)"
            " values (nextval('laneway.jobs_seq_seq'), gen_random_uuid(), 't', '{}')"
        )
        desk.do(
            "insert into laneway.ready (seq, job_type, rank) select seq, 't', 0 from laneway.jobs"
        )
    else:
        desk.submit(delay=3600.0)
        desk.do("update laneway.delayed set run_at = clock_timestamp()")
        desk.run(lanes.peek(["t"]))
    publish(desk, approval=ALWAYS)
    assert desk.claimed() == []
    assert desk.one("select status from laneway.jobs_view") == "awaiting_approval"


def test_retry_of_a_job_that_ran_before_its_policy_waits_for_approval(desk: Desk) -> None:
    claim = desk.running(max_retries=2)
    desk.settle(claim, "fail", delay_s=0.0)
    publish(desk, approval=ALWAYS)
    assert desk.claimed() == []
    assert status(desk, claim.seq) == "awaiting_approval"
    approve(desk, claim.seq)
    (again,) = desk.claimed()
    assert again.attempt == 2
    # The budget is what it was: a second failure is the last but one.
    assert desk.row("lease", claim.seq)["retries"] == 1


def test_analysis_of_a_begun_job_keeps_its_steps_and_checkpoint(desk: Desk) -> None:
    claim = desk.running()
    desk.report([Report(claim, checkpoint='{"page": 3}')])
    desk.run(steps.keep(claim, "charge", '"paid"', 0.1))
    desk.settle(claim, "fail", delay_s=0.0)
    publish(desk, approval=ALWAYS, analysis=True)
    assert desk.claimed() == []
    analysis = analyzing(desk)
    desk.run(steps.keep(analysis, "count", "7", 0.1))
    analyzed(desk, analysis)
    approve(desk, claim.seq)
    (run,) = desk.claim().assignments
    assert run.checkpoint == '{"page": 3}'
    assert desk.rows("select name from laneway.steps") == [("charge",)]
    assert desk.row("lease", claim.seq)["retries"] == 1


def test_jobs_without_policy_run_beside_those_sent_back(desk: Desk) -> None:
    held, free = desk.submit("t"), desk.submit("free")
    publish(desk, approval=ALWAYS)
    answer = desk.claim(types=["t", "free"])
    assert [one.claim.seq for one in answer.assignments] == [free]
    assert (answer.left_over, answer.assignments[0].changed_since_approval) == (0, False)
    assert status(desk, held) == "awaiting_approval"
    assert desk.slots_agree()


def test_job_sent_back_leaves_its_key_and_limit_to_the_next(desk: Desk) -> None:
    desk.do("update laneway.limits set max_concurrent = 1 where name = 'ollama'")
    first, second = (desk.submit(concurrency_key="k") for _ in range(2))
    publish(desk, approval=ALWAYS, limits=("ollama",))
    for _ in range(3):
        assert desk.claimed() == []
    assert [status(desk, seq) for seq in (first, second)] == ["awaiting_approval"] * 2
    assert desk.keys_agree()
    assert desk.limits_agree()
    assert desk.slots_agree()


def test_waiters_for_a_key_come_forward_when_the_first_is_sent_back(desk: Desk) -> None:
    runs = desk.running("other", concurrency_key="k")
    first, second = (desk.submit(concurrency_key="k") for _ in range(2))
    assert desk.claimed() == []
    assert desk.places(first) == desk.places(second) == ["key_waiters"]
    publish(desk, approval=ALWAYS)
    desk.settle(runs, "finish")
    for _ in range(2):
        assert desk.claimed() == []
    assert [status(desk, seq) for seq in (first, second)] == ["awaiting_approval"] * 2
    assert desk.keys_agree()


def test_watchers_see_that_a_job_was_sent_back(desk: Desk) -> None:
    seq = desk.submit()
    desk.do("insert into laneway.watches (seq, until) values (%s, 'infinity')", seq)
    publish(desk, approval=ALWAYS)
    desk.claim()
    assert desk.rows("select name, state ->> 'status' from laneway.events where seq = %s", seq) == [
        ("job.returned", "awaiting_approval")
    ]


def test_sent_back_jobs_wake_those_who_analyse(desk: Desk) -> None:
    seq = desk.submit()
    publish(desk, approval=ALWAYS, analysis=True)
    desk.do("listen laneway")
    desk.claim()
    heard = [each.payload for each in desk.conn.notifies(timeout=60, stop_after=1)]
    assert heard == [f"wake {analysis_of('t')}"]
    assert status(desk, seq) == "pending"


def test_retry_by_an_operator_starts_with_a_new_budget(desk: Desk) -> None:
    claim = desk.running(max_retries=2)
    desk.settle(claim, "fail", delay_s=0.0)
    publish(desk, approval=ALWAYS)
    desk.claim()
    desk.cancel(claim.seq)
    desk.retry(claim.seq)
    approve(desk, claim.seq)
    desk.claim()
    assert desk.row("lease", claim.seq)["retries"] == 0
