"""Jobs that come after other jobs: fan-in, fan-out, chains, and the effect of failures."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg
import pytest

from laneway.domain.approval import Approval
from laneway.store import jobs, leases
from laneway.store.leases import Verdict
from tests.store.approvals import publish
from tests.store.edges import Edges
from tests.support.store_client import StoreClient, error

WIDE = 2500


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


# -- release --------------------------------------------------------------------------------


def test_child_waits_until_its_parent_completes(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    assert db.places(child) == ["waiting"]
    assert edges.status(child) == "waiting"
    assert [c.seq for c in db.claimed()] == [parent]
    answers = edges.end(parent)
    assert [(a.seq, a.answer, a.status) for a in answers] == [(child, "promoted", "t")]
    assert db.places(child) == ["ready"]
    assert [c.seq for c in db.claimed()] == [child]
    assert edges.are_consistent()


def test_child_waits_for_the_last_of_its_parents(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(3)]
    child = edges.submit(after=parents)
    edges.end(parents[1])
    edges.end(parents[0])
    assert db.places(child) == ["waiting"]
    edges.end(parents[2])
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_parents_that_end_together_release_their_child_once(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(20)]
    child = edges.submit(after=parents)
    answers = edges.settle(db.claimed())
    assert [a.seq for a in answers if a.answer == "promoted"] == [child]
    assert edges.arrivals() == []
    assert edges.are_consistent()


def test_wide_fan_out_releases_every_child(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None, *({"after": [0]} for _ in range(WIDE))], flow=flow)
    assert [c.seq for c in db.claimed()] == [seqs[0]]
    answers = edges.settle([edges.claim_of(seqs[0])])
    assert "arrived" in {a.answer for a in answers}
    # A part at once, so that workers can begin.
    assert db.one("select count(*) from laneway.ready") > 900
    assert edges.advance(500) == {"t"}
    assert db.one("select count(*) from laneway.ready") == WIDE
    assert edges.arrivals() == []
    assert edges.are_consistent()


def test_wide_fan_in_in_one_transaction_locks_no_parent(db: StoreClient, edges: Edges) -> None:
    db.begin()
    flow = edges.flow()
    parents = edges.submit_batch([None] * 1000, flow=flow)
    ids = [str(one[0]) for one in db.rows("select id from laneway.jobs order by seq")]
    (child,) = edges.submit_batch([{"after": ids}], flow=flow)
    locked = "select count(*) from laneway.ready where xmax <> 0"
    assert db.one(locked) == 0
    db.commit()
    assert db.row("countdowns", child)["missing"] == len(parents)
    edges.settle(db.claimed(1000))
    assert db.places(child) == ["ready"]


def test_chain_runs_in_order(db: StoreClient, edges: Edges) -> None:
    seqs = edges.submit_batch([None, *({"after": [n]} for n in range(9))])
    ran = []
    for _ in seqs:
        (claim,) = db.claimed()
        ran.append(claim.seq)
        edges.settle([claim])
    assert ran == seqs


def test_layers_run_one_after_the_other(db: StoreClient, edges: Edges) -> None:
    width = 6
    links: list[dict[str, object] | None] = [None] * width
    for layer in range(1, 4):
        before = [(layer - 1) * width + n for n in range(width)]
        links += [{"after": [before[n], before[(n + 1) % width]]} for n in range(width)]
    seqs = edges.submit_batch(links)
    for layer in range(4):
        claimed = db.claimed()
        assert {c.seq for c in claimed} == set(seqs[layer * width : (layer + 1) * width])
        edges.settle(claimed)
    assert edges.are_consistent()


def test_retry_attempts_of_a_parent_do_not_count(db: StoreClient, edges: Edges) -> None:
    parent, other = edges.submit(), edges.submit()
    child = edges.submit(after=[parent, other])
    for kind in ("fail", "release", "snooze"):
        edges.end(parent, kind=kind)
        db.make_due()
    assert db.row("countdowns", child)["missing"] == 2
    edges.end(parent, other)
    assert db.places(child) == ["ready"]


def test_completed_parent_does_not_delay_a_new_job(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    edges.end(parent)
    child = edges.submit(after=[parent])
    assert db.places(child) == ["ready"]
    assert db.row("links", child)["parents"] == [parent]
    assert edges.are_consistent()


def test_job_finished_in_its_own_transaction_releases_its_child(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    claim = edges.claim(parent)
    other.begin()
    finish = "select laneway.finish_in_transaction(%s, %s, 'null', 0)"
    assert other.one(finish, claim.seq, claim.attempt) == "finished"
    assert db.places(child) == ["waiting"]
    other.commit()
    assert {a.answer for a in edges.settle([claim], "confirm")} >= {"arrived"}
    edges.advance()
    assert db.places(child) == ["ready"]


def test_own_transaction_with_an_older_snapshot_misses_no_edge(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    parent = edges.submit()
    claim = edges.claim(parent)
    other.do("begin isolation level repeatable read")
    other.one("select count(*) from laneway.jobs")
    child = edges.submit(after=[parent])
    finish = "select laneway.finish_in_transaction(%s, %s, 'null', 0)"
    assert other.one(finish, claim.seq, claim.attempt) == "finished"
    other.commit()
    edges.advance()
    assert db.places(child) == ["ready"]


# -- what a released job does ---------------------------------------------------------------


def test_released_job_that_is_not_due_is_delayed(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], delay="1 hour")
    assert db.places(child) == ["waiting"]
    edges.end(parent)
    assert db.places(child) == ["delayed"]


def test_released_job_of_a_gated_type_awaits_its_approval(db: StoreClient, edges: Edges) -> None:
    publish(db, "gated", Approval())
    parent = edges.submit()
    child = edges.submit("gated", after=[parent], created_by="ann")
    assert db.places(child) == ["waiting"]
    edges.end(parent)
    assert db.places(child) == ["awaiting"]
    assert edges.status(child) == "awaiting_approval"


def test_released_job_keeps_the_needs_of_its_submitter(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    single = edges.submit("unpublished", after=[parent], needs="both")
    db.begin()
    flow = edges.flow()
    first, batched = edges.submit_batch(
        [None, {"after": [str(db.id_of(parent))]}], flow=flow, needs="approval"
    )
    db.commit()
    assert db.places(first) == ["awaiting"]
    edges.end(parent)
    assert edges.status(single) == "pending"
    assert edges.status(batched) == "awaiting_approval"


def test_waiting_job_holds_its_unique_key(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit("u", after=[parent], unique_key="k")
    assert edges.submit("u", unique_key="k") == child
    edges.end(parent, kind="giveup")
    assert db.places(child) == ["outcome"]
    assert edges.submit("u", unique_key="k") != child


def test_waiting_job_takes_no_slot_limit_or_key(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    edges.submit(after=[parent], concurrency_key="k")
    assert db.one("select count(*) from laneway.key_holders") == 0
    assert db.slots_agree()
    assert [c.seq for c in db.claimed()] == [parent]


def test_job_after_a_duplicate_waits_for_the_first_job(db: StoreClient, edges: Edges) -> None:
    first = edges.submit(unique_key="k")
    ids = [uuid4(), uuid4()]
    rows = db.rows(
        "select job_id, status, duplicate from laneway.submit_batch(%s, '[{}, {}]', '{0, 1}',"
        ' \'[{"job_type": "t", "unique_key": "k"}, {"job_type": "t"}]\','
        " p_after => jsonb_build_array(null, jsonb_build_object("
        "'after', jsonb_build_array(%s::text))))",
        ids,
        ids[0],
    )
    assert rows == [(db.id_of(first), "approved", True), (ids[1], "waiting", False)]
    child = db.seq_of(ids[1])
    edges.end(first)
    assert db.places(child) == ["ready"]


# -- failures -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["giveup", "cancel"])
def test_failed_parent_cancels_its_child_and_all_after_it(
    db: StoreClient, edges: Edges, kind: str
) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    last = edges.submit(after=[child])
    edges.end(parent, kind=kind)
    status = {"giveup": "failed", "cancel": "cancelled"}[kind]
    outcome = db.row("outcome", child)
    assert outcome["status"] == "cancelled"
    assert outcome["cancel_reason"] == f"after job {db.id_of(parent)}: {status}"
    assert outcome["cancel_requested_at"] is None
    assert db.row("outcome", last)["cancel_reason"] == f"after job {db.id_of(child)}: cancelled"
    assert edges.arrivals() == []


def test_wide_cascade_cancels_every_child_in_bounded_steps(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None, *({"after": [0]} for _ in range(900))], flow=flow)
    edges.settle([edges.claim(seqs[0])], "giveup")
    assert db.one("select count(*) from laneway.outcome") == 1
    edges.advance(100)
    assert db.one("select count(*) from laneway.outcome where status = 'cancelled'") == 900
    assert edges.arrivals() == []


def test_run_policy_starts_the_child_after_a_failure(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit(), edges.submit()]
    child = edges.submit(after=parents, after_failure="run")
    edges.end(parents[0], kind="giveup")
    assert db.places(child) == ["waiting"]
    db.cancel(parents[1])
    assert db.places(child) == ["ready"]


def test_hold_policy_waits_for_a_retry_that_completes(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], after_failure="hold")
    edges.end(parent, kind="giveup")
    assert db.places(child) == ["waiting"]
    assert edges.arrivals() == []
    db.retry(parent)
    edges.end(parent)
    assert db.places(child) == ["ready"]


@pytest.mark.parametrize(
    "rule, place, status",
    [
        ("cancel", "outcome", "cancelled"),
        ("run", "ready", "approved"),
        ("hold", "waiting", "waiting"),
    ],
)
def test_job_after_a_failed_one_follows_its_rule_at_once(
    db: StoreClient, edges: Edges, rule: str, place: str, status: str
) -> None:
    parent = edges.submit()
    edges.end(parent, kind="giveup")
    child = edges.submit(after=[parent], after_failure=rule)
    assert db.places(child) == [place]
    assert edges.status(child) == status
    (batched,) = edges.submit_batch([{"after": [str(db.id_of(parent))], "after_failure": rule}])
    assert db.places(batched) == [place]
    assert edges.are_consistent()


@pytest.mark.parametrize(
    "rule, status", [("cancel", "cancelled"), ("run", "approved"), ("hold", "waiting")]
)
def test_job_that_lost_its_state_counts_as_failed(
    db: StoreClient, edges: Edges, rule: str, status: str
) -> None:
    """As after a restore of some tables: it is shown as failed until it is repaired."""
    lost = edges.submit()
    db.do("delete from laneway.ready where seq = %s", lost)
    assert edges.status(lost) == "failed"
    child = edges.submit(after=[lost], after_failure=rule)
    assert edges.status(child) == status
    if status == "cancelled":
        reason = db.one("select cancel_reason from laneway.outcome where seq = %s", child)
        assert reason == f"after job {db.id_of(lost)}: failed"


def test_batch_after_a_failed_job_is_cancelled_as_a_whole(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    edges.end(parent, kind="giveup")
    first, second = edges.submit_batch([{"after": [str(db.id_of(parent))]}, {"after": [0]}])
    edges.advance()
    assert edges.status(first) == "cancelled"
    assert edges.status(second) == "cancelled"


def test_rejected_expired_overaged_and_lost_parents_count_as_failed(
    db: StoreClient, edges: Edges
) -> None:
    publish(db, "gated", Approval())
    rejected = edges.submit("gated", created_by="ann")
    child = edges.submit(after=[rejected])
    db.one("select laneway.decide(%s, false, 'bob', 'no', null)", rejected)
    edges.advance()
    assert edges.status(child) == "cancelled"

    lost = edges.submit()
    after_lost = edges.submit(after=[lost], after_failure="run")
    db.do("delete from laneway.ready where seq = %s", lost)
    db.rows("select laneway.end_lost(10)")
    assert db.places(after_lost) == ["ready"]


def test_overaged_waiting_job_fails_and_cancels_its_children(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], max_age=0.001)
    last = edges.submit(after=[child])
    db.one("select laneway.take_leadership(%s, 60)", db.worker)
    epoch = db.one("select epoch from laneway.leader")
    db.one("select laneway.expire_overaged(%s, %s, 10)", db.worker, epoch)
    edges.advance()
    assert edges.status(child) == "failed"
    assert edges.status(last) == "cancelled"
    assert edges.status(parent) == "approved"


# -- operators ------------------------------------------------------------------------------


def test_cancelled_waiting_job_never_starts(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    assert db.cancel(child).found_in == "waiting"
    edges.end(parent)
    assert edges.status(child) == "cancelled"
    assert edges.are_consistent()
    # Nothing is left to wait for.
    db.retry(child)
    assert db.places(child) == ["ready"]


def test_retried_child_waits_until_its_failed_parent_completes(
    db: StoreClient, edges: Edges
) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    edges.end(parent, kind="giveup")
    assert edges.status(child) == "cancelled"
    assert db.retry(child).found_in == "cancelled"
    assert db.places(child) == ["waiting"]
    db.retry(parent)
    edges.end(parent)
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_retry_of_a_parent_reopens_no_satisfied_edge(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], after_failure="run")
    edges.end(parent, kind="giveup")
    assert db.places(child) == ["ready"]
    db.retry(parent)
    edges.end(parent)
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_priority_of_a_waiting_job_can_be_changed(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    assert db.run(jobs.reprioritize(db.id_of(child), 7)).found_in == "waiting"
    edges.end(parent)
    assert db.row("ready", child)["rank"] == -7


def test_cancel_of_a_job_cancels_its_sub_jobs_at_every_depth(db: StoreClient, edges: Edges) -> None:
    owner, inner, leaf, other = (edges.submit() for _ in range(4))
    for seq, of in ((inner, owner), (leaf, inner)):
        db.do("insert into laneway.links (seq, owner) values (%s, %s)", seq, of)
    claim = edges.claim(inner)
    db.cancel(owner, reason="enough")
    edges.advance()
    assert edges.status(owner) == "cancelled"
    assert db.row("lease", inner)["cancel_reason"] == "enough"
    assert edges.status(leaf) == "cancelled"
    assert edges.status(other) == "approved"
    edges.settle([claim])
    assert edges.status(inner) == "cancelled"


def owner_of(db: StoreClient, edges: Edges, wait: str = "parts") -> tuple[int, list[int]]:
    """A running job with two sub-jobs, as a handler submits them."""
    owner = db.running("o")
    parts = [edges.submit(), edges.submit()]
    for part in parts:
        db.do(
            "insert into laneway.links (seq, owner, owner_wait) values (%s, %s, %s)",
            part,
            owner.seq,
            wait,
        )
        db.do("insert into laneway.open_edges values (%s, %s, 'run')", part, owner.seq)
    db.do("insert into laneway.countdowns values (%s, 2)", owner.seq)
    return owner.seq, parts


def suspend(db: StoreClient, seq: int) -> None:
    """Moves a running job to `waiting`, as the end of an attempt that waits does."""
    db.do(
        "with gone as (delete from laneway.lease where seq = %s returning *)"
        " insert into laneway.waiting (seq, job_type, rank, attempt, reason, name)"
        " select seq, job_type, rank, attempt, 'sub_jobs', 'parts' from gone",
        seq,
    )


def test_owner_continues_after_the_last_end_of_its_sub_jobs(db: StoreClient, edges: Edges) -> None:
    owner, parts = owner_of(db, edges)
    suspend(db, owner)
    edges.end(parts[0], kind="giveup")
    assert db.places(owner) == ["waiting"]
    edges.end(parts[1])
    assert db.places(owner) == ["ready"]
    assert edges.are_consistent()


def test_retry_of_an_owner_retries_its_failed_sub_jobs(db: StoreClient, edges: Edges) -> None:
    owner, parts = owner_of(db, edges)
    edges.end(parts[0])
    edges.end(parts[1], kind="giveup")
    failed = error("SubJobsFailed", "1 of 2")
    db.run(leases.settle([Verdict(edges.claim_of(owner), "giveup", error=failed)]))
    db.retry(owner)
    assert edges.status(parts[0]) == "completed"
    assert edges.status(parts[1]) == "approved"
    waits = db.one("select waits_for from laneway.jobs_view where seq = %s", owner)
    assert (waits["kind"], waits["name"], waits["missing"]) == ("sub_jobs", "parts", 1)
    edges.end(parts[1])
    assert db.places(owner) == ["ready"]
    assert edges.are_consistent()


def test_retry_after_another_failure_leaves_sub_jobs_alone(db: StoreClient, edges: Edges) -> None:
    owner, parts = owner_of(db, edges)
    edges.end(*parts, kind="giveup")
    edges.settle([edges.claim_of(owner)], "giveup")
    db.retry(owner)
    assert db.places(owner) == ["ready"]
    assert edges.status(parts[0]) == "failed"


def test_run_now_wakes_only_a_sleeper(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    asleep = db.running("s").seq
    db.do("delete from laneway.lease where seq = %s", asleep)
    db.do(
        "insert into laneway.waiting (seq, job_type, rank, attempt, reason, name, wake_at)"
        " values (%s, 's', 0, 1, 'sleep', 'nap', clock_timestamp() + interval '1 hour')",
        asleep,
    )
    woken = db.run(jobs.run_now(db.id_of(asleep)))
    assert (woken.found_in, woken.job_type) == ("waiting", "s")
    assert woken.due is not None
    assert db.places(asleep) == ["ready"]
    refused = db.run(jobs.run_now(db.id_of(child)))
    assert (refused.found_in, refused.due) == ("waiting", None)
    assert db.places(child) == ["waiting"]


def test_status_and_reason_of_a_waiting_job_are_shown(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(25)]
    child = edges.submit(after=parents)
    waits = db.one("select waits_for from laneway.jobs_view where seq = %s", child)
    assert waits["kind"] == "jobs"
    assert waits["missing"] == 25
    assert waits["jobs"] == [str(db.id_of(seq)) for seq in parents[:20]]
    assert db.one("select waits_for from laneway.jobs_view where seq = %s", parents[0]) is None


def test_waiting_job_is_not_lost(db: StoreClient, edges: Edges) -> None:
    edges.submit(after=[edges.submit()])
    assert db.rows("select * from laneway.lost_jobs(0, 10)") == []
    assert db.rows("select * from laneway.look_for_lost(0, 10) where id is not null") == []


# -- refusals -------------------------------------------------------------------------------


def refusal(call: object) -> str:
    assert callable(call)
    with pytest.raises(psycopg.Error) as caught:
        call()
    assert caught.value.sqlstate == "LW001"
    return str(caught.value.diag.message_primary)


def test_unknown_parent_is_refused_by_its_id(db: StoreClient, edges: Edges) -> None:
    missing = uuid4()
    text = refusal(lambda: db.rows("select * from laneway.submit('t', after => %s)", [missing]))
    assert text == f"after: no job has the id {missing} in the workspace default"
    batch = refusal(lambda: edges.submit_batch([None, {"after": [str(missing)]}]))
    assert batch == f"jobs[1].after: no job has the id {missing} in the workspace default"
    assert db.one("select count(*) from laneway.jobs") == 0


def test_parent_in_another_workspace_is_refused(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit(workspace="other")
    assert "no job has the id" in refusal(lambda: edges.submit(after=[parent]))


def test_later_job_of_a_batch_cannot_be_a_parent(edges: Edges) -> None:
    assert "comes later in the batch" in refusal(lambda: edges.submit_batch([{"after": [1]}, None]))
    assert "comes later in the batch" in refusal(lambda: edges.submit_batch([{"after": [0]}]))


@pytest.mark.parametrize(
    "link, rule",
    [
        ({"after": ["x"]}, "'x' is not a job id"),
        ({"after": [None]}, "null is not a job id"),
        ({"after_failure": "skip"}, "after_failure: cancel, run or hold"),
        ({"name": ""}, "name: 1 to 128 bytes"),
    ],
)
def test_malformed_link_is_refused(db: StoreClient, link: dict[str, object], rule: str) -> None:
    text = refusal(
        lambda: db.rows(
            "select * from laneway.submit_batch(array[gen_random_uuid()], '[{}]', '{0}',"
            ' \'[{"job_type": "t"}]\', p_after => %s::jsonb)',
            json.dumps([link]),
        )
    )
    assert text.startswith("jobs[0].")
    assert rule in text


def test_too_many_parents_outside_of_a_flow_are_refused(db: StoreClient, edges: Edges) -> None:
    ids = [str(uuid4()) for _ in range(1001)]
    assert "at most 1000 jobs" in refusal(lambda: edges.submit_batch([{"after": ids}]))


def test_flow_of_another_workspace_or_unknown_is_refused(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow(workspace="other")
    assert "no flow has the id" in refusal(lambda: edges.submit(flow=flow))
    assert "no flow has the id" in refusal(lambda: edges.submit(flow=uuid4()))


def test_flow_is_bounded_in_jobs_and_edges(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    db.do("update laneway.flows set jobs = 99999, edges = 100000 where id = %s", flow)
    first = edges.submit(flow=flow)
    assert "at most 100000 jobs" in refusal(lambda: edges.submit(flow=flow))
    db.do("update laneway.flows set jobs = 0 where id = %s", flow)
    text = refusal(lambda: edges.submit(flow=flow, after=[first]))
    assert "and 100001" in text
