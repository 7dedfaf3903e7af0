"""Laws of the claim: it checks an approval against the current policy."""

from __future__ import annotations

import pytest

from laneway.domain.approval import Approval, analysis_of
from laneway.store import handler_waits, lanes, steps
from laneway.store.handler_waits import NewWait
from laneway.store.leases import Report
from tests.store.approvals import EUR, analyzed, analyzing, approve, publish, status
from tests.store.edges import Edges
from tests.support.store_client import StoreClient

ALWAYS = Approval()


def test_job_submitted_before_its_policy_waits_for_approval(db: StoreClient) -> None:
    seq = db.submit(created_by="bob")
    publish(db, approval=Approval(two_person=True, expires=60))
    assert db.claimed() == []
    assert (status(db, seq), db.places(seq)) == ("awaiting_approval", ["awaiting"])
    row = db.row("awaiting", seq)
    assert (row["attempt"], (row["expires_at"] - row["since"]).total_seconds()) == (0, 60)
    assert db.slots_agree()
    approve(db, seq)
    assert [claim.attempt for claim in db.claimed()] == [1]


def test_job_submitted_before_its_analysis_is_analysed_first(db: StoreClient) -> None:
    seq = db.submit()
    publish(db, approval=ALWAYS, analysis=True)
    assert db.claimed() == []
    assert (status(db, seq), db.places(seq)) == ("pending", ["ready"])
    assert analyzed(db, analyzing(db)).status == "awaiting_approval"
    approve(db, seq)
    assert [claim.attempt for claim in db.claimed()] == [2]


def test_type_with_analysis_and_no_approval_runs_after_its_analysis(db: StoreClient) -> None:
    seq = db.submit()
    publish(db, analysis=True)
    assert db.claimed() == []
    assert analyzed(db, analyzing(db)).status == "approved"
    assert [claim.seq for claim in db.claimed()] == [seq]


def test_policy_below_a_cost_approves_job_submitted_before_it(db: StoreClient) -> None:
    seq = db.submit()
    publish(db, approval=Approval(below_cost=7, currency="EUR"), analysis=True)
    assert db.claimed() == []
    assert analyzed(db, analyzing(db), EUR).status == "approved"
    assert [claim.seq for claim in db.claimed()] == [seq]


def test_handler_that_waited_needs_the_approval_of_the_current_policy(db: StoreClient) -> None:
    claim = db.running()
    wait = NewWait("night", "sleep", 3600.0)
    db.run(handler_waits.begin(claim, wait))
    db.settle(claim, "wait", result="night")
    publish(db, approval=ALWAYS)
    db.do("update laneway.waiting set wake_at = clock_timestamp() - interval '1 s'")
    db.run(lanes.peek([]))
    assert db.claimed() == []
    assert (status(db, claim.seq), db.places(claim.seq)) == ("awaiting_approval", ["awaiting"])
    approve(db, claim.seq)
    (again,) = db.claimed()
    assert again.attempt == 2
    assert db.run(handler_waits.begin(again, wait)).state == "done"


def test_job_after_another_needs_the_approval_of_the_current_policy(db: StoreClient) -> None:
    edges = Edges(db)
    first = edges.submit("first")
    second = edges.submit(after=[first])
    db.settle(edges.claim(first, "first"), "finish")
    assert db.places(second) == ["ready"]
    publish(db, approval=ALWAYS)
    assert db.claimed() == []
    assert status(db, second) == "awaiting_approval"


@pytest.mark.parametrize("way", ["sql", "batch", "delayed"])
def test_policy_holds_for_jobs_of_every_way_in(db: StoreClient, way: str) -> None:
    if way == "sql":
        db.rows("select laneway.submit('t')")
    elif way == "batch":
        db.do(
            "insert into laneway.jobs (seq, id, job_type, payload)"
            " values (nextval('laneway.jobs_seq_seq'), gen_random_uuid(), 't', '{}')"
        )
        db.do(
            "insert into laneway.ready (seq, job_type, rank) select seq, 't', 0 from laneway.jobs"
        )
    else:
        db.submit(delay=3600.0)
        db.do("update laneway.delayed set run_at = clock_timestamp()")
        db.run(lanes.peek(["t"]))
    publish(db, approval=ALWAYS)
    assert db.claimed() == []
    assert db.one("select status from laneway.jobs_view") == "awaiting_approval"


def test_retry_of_a_job_that_ran_before_its_policy_waits_for_approval(db: StoreClient) -> None:
    claim = db.running(max_retries=2)
    db.settle(claim, "fail", delay_s=0.0)
    publish(db, approval=ALWAYS)
    assert db.claimed() == []
    assert status(db, claim.seq) == "awaiting_approval"
    approve(db, claim.seq)
    (again,) = db.claimed()
    assert again.attempt == 2
    # The retry budget is unchanged: a second failure is the last but one.
    assert db.row("lease", claim.seq)["retries"] == 1


def test_analysis_of_a_begun_job_keeps_its_steps_and_checkpoint(db: StoreClient) -> None:
    claim = db.running()
    db.report([Report(claim, checkpoint='{"page": 3}')])
    db.run(steps.save(claim, "charge", '"paid"', 0.1))
    db.settle(claim, "fail", delay_s=0.0)
    publish(db, approval=ALWAYS, analysis=True)
    assert db.claimed() == []
    analysis = analyzing(db)
    db.run(steps.save(analysis, "count", "7", 0.1))
    analyzed(db, analysis)
    approve(db, claim.seq)
    (run,) = db.claim().assignments
    assert run.checkpoint == '{"page": 3}'
    assert db.rows("select name from laneway.steps") == [("charge",)]
    assert db.row("lease", claim.seq)["retries"] == 1


def test_jobs_without_policy_run_while_others_are_sent_back(db: StoreClient) -> None:
    held, free = db.submit("t"), db.submit("free")
    publish(db, approval=ALWAYS)
    answer = db.claim(types=["t", "free"])
    assert [one.claim.seq for one in answer.assignments] == [free]
    assert (answer.left_over, answer.assignments[0].changed_since_approval) == (0, False)
    assert status(db, held) == "awaiting_approval"
    assert db.slots_agree()


def test_job_sent_back_leaves_its_key_and_limit_to_the_next(db: StoreClient) -> None:
    db.do("update laneway.limits set max_concurrent = 1 where name = 'ollama'")
    first, second = (db.submit(concurrency_key="k") for _ in range(2))
    publish(db, approval=ALWAYS, limits=("ollama",))
    for _ in range(3):
        assert db.claimed() == []
    assert [status(db, seq) for seq in (first, second)] == ["awaiting_approval"] * 2
    assert db.keys_agree()
    assert db.limits_agree()
    assert db.slots_agree()


def test_waiters_for_a_key_come_forward_when_the_first_is_sent_back(db: StoreClient) -> None:
    runs = db.running("other", concurrency_key="k")
    first, second = (db.submit(concurrency_key="k") for _ in range(2))
    assert db.claimed() == []
    assert db.places(first) == db.places(second) == ["key_waiters"]
    publish(db, approval=ALWAYS)
    db.settle(runs, "finish")
    for _ in range(2):
        assert db.claimed() == []
    assert [status(db, seq) for seq in (first, second)] == ["awaiting_approval"] * 2
    assert db.keys_agree()


def test_watchers_see_that_a_job_was_sent_back(db: StoreClient) -> None:
    seq = db.submit()
    db.do("insert into laneway.watches (seq, until) values (%s, 'infinity')", seq)
    publish(db, approval=ALWAYS)
    db.claim()
    assert db.rows("select name, state ->> 'status' from laneway.events where seq = %s", seq) == [
        ("job.returned", "awaiting_approval")
    ]


def test_sent_back_jobs_wake_analysis_workers(db: StoreClient) -> None:
    seq = db.submit()
    publish(db, approval=ALWAYS, analysis=True)
    db.do("listen laneway")
    db.claim()
    heard = [each.payload for each in db.conn.notifies(timeout=60, stop_after=1)]
    assert heard == [f"wake {analysis_of('t')}"]
    assert status(db, seq) == "pending"


def test_retry_by_an_operator_starts_with_a_new_budget(db: StoreClient) -> None:
    claim = db.running(max_retries=2)
    db.settle(claim, "fail", delay_s=0.0)
    publish(db, approval=ALWAYS)
    db.claim()
    db.cancel(claim.seq)
    db.retry(claim.seq)
    approve(db, claim.seq)
    db.claim()
    assert db.row("lease", claim.seq)["retries"] == 0
