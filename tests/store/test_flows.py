"""Flows as a whole: their sums and status, their jobs, results, verbs and retention."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from laneway.store import handler_waits, leases
from laneway.store.flows import states
from laneway.store.leases import Verdict
from tests.store.edges import Edges
from tests.store.test_durable_waits import entries
from tests.support.store_client import StoreClient, error


@pytest.fixture
def edges(db: StoreClient) -> Edges:
    return Edges(db)


def shown(db: StoreClient, flow: UUID) -> dict[str, Any]:
    names = ("status", "jobs", "completed", "failed", "cancelled", "ended_at")
    (row,) = db.rows(f"select {', '.join(names)} from laneway.list_flows(null, 1, %s)", flow)
    return dict(zip(names, row, strict=True))


def fold(db: StoreClient) -> int:
    return int(db.one("select laneway.fold_tallies(1000)"))


def test_status_of_a_flow_follows_its_jobs(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow("nightly")
    first, second, third = edges.submit_batch([None, {"after": [0]}, None], flow=flow)
    assert shown(db, flow)["status"] == "running"
    edges.end(first)
    edges.end(second)
    assert shown(db, flow)["status"] == "running"
    edges.end(third, kind="giveup")
    found = shown(db, flow)
    assert (found["status"], found["completed"], found["failed"]) == ("failed", 2, 1)
    assert found["ended_at"] is not None
    db.retry(third)
    assert shown(db, flow)["status"] == "running"
    assert shown(db, flow)["ended_at"] is None
    edges.end(third)
    assert shown(db, flow)["status"] == "completed"
    assert fold(db) > 0
    assert shown(db, flow)["status"] == "completed"
    assert fold(db) == 0


def test_folding_changes_no_sum(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 5 + [{"after": [0]}], flow=flow)
    edges.end(*seqs[1:4])
    edges.end(seqs[0], kind="giveup")
    before = shown(db, flow)
    fold(db)
    assert shown(db, flow) == before
    assert (before["jobs"], before["cancelled"]) == (6, 1)
    assert db.one("select edges from laneway.flows") == 1


def test_open_flows_are_counted_as_of_the_last_fold(db: StoreClient, edges: Edges) -> None:
    count = "select laneway.count_open_flows(%s)"
    made = [edges.flow() for _ in range(3)]
    seqs = [edges.submit(flow=flow) for flow in made]
    fold(db)
    assert (db.one(count, 10), db.one(count, 2)) == (3, 2)
    edges.end(seqs[0], kind="giveup")
    edges.end(seqs[1])
    fold(db)
    assert db.one(count, 10) == 1
    db.retry(seqs[0])
    fold(db)
    assert db.one(count, 10) == 2


def test_ends_of_one_flow_do_not_wait_for_each_other(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    edges.submit_batch([None, None], flow=flow)
    (first,), (second,) = db.claimed(1), other.claimed(1)
    db.begin()
    edges.settle([first])
    assert Edges(other).settle([second]) == []
    assert fold(other) == 2
    db.commit()
    assert shown(db, flow)["status"] == "completed"


def test_job_submitted_alone_can_join_a_flow(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    first = edges.submit(flow=flow)
    edges.submit(flow=flow, after=[first])
    assert shown(db, flow)["jobs"] == 2
    assert db.one("select flow from laneway.jobs_view where seq = %s", first) == flow


def test_jobs_of_a_flow_are_shown_with_their_edges(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    links: list[Any] = [{"name": "load"}, {"after": [0], "after_failure": "hold", "name": "join"}]
    seqs = edges.submit_batch(links, flow=flow)
    edges.submit()
    columns = "name, status, parents, after_failure"
    rows = db.rows(f"select {columns} from laneway.flow_states(%s)", flow)
    parent = db.id_of(seqs[0])
    assert rows == [("load", "approved", [], None), ("join", "waiting", [parent], "hold")]
    page = db.rows("select seq from laneway.flow_states(%s, %s, 1)", flow, seqs[0])
    assert page == [(seqs[1],)]


def test_page_of_jobs_ends_where_their_edges_become_many(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None] * 5, flow=flow)
    # Of the third job, more parents than a page shows; of the fourth, few.
    for seq, parents in ((seqs[2], [seqs[0]] * 10_001), (seqs[3], seqs[:2])):
        db.do("update laneway.links set parents = %s where seq = %s", parents, seq)
    first = db.run(states(flow, limit=100, after=None))
    assert [len(one.after) for one in first.items] == [0, 0, 10_000]
    assert first.next_cursor == seqs[2]
    rest = db.run(states(flow, limit=100, after=first.next_cursor))
    assert [len(one.after) for one in rest.items] == [2, 0]
    assert rest.next_cursor is None
    assert db.run(states(flow, limit=1, after=seqs[4])).items == []


def test_flows_are_listed_newest_first_and_filtered(db: StoreClient, edges: Edges) -> None:
    made = [edges.flow(name) for name in ("a", "b", "a", "c")]
    edges.submit(flow=made[2])

    def names(**given: Any) -> list[UUID]:
        named = "".join(f", {name} => %s" for name in given)
        text = f"select id from laneway.list_flows(null, 10{named})"
        return [row[0] for row in db.rows(text, *given.values())]

    assert names() == made[::-1]
    assert names(p_name="a") == [made[2], made[0]]
    assert names(p_status="running") == [made[2]]
    assert names(p_workspace="other") == []
    assert names(p_within='[{"workspace": "default"}]') == made[::-1]
    assert names(p_within='[{"owner": "ann"}]') == []
    assert names(p_within='[{"workspace": "default", "lanes": ["default"]}]') == []
    second = "select id from laneway.list_flows((select seq from laneway.flows where id = %s), 1)"
    assert db.rows(second, made[2]) == [(made[1],)]


def test_search_that_stops_says_where(db: StoreClient, edges: Edges) -> None:
    made = [edges.flow(str(n)) for n in range(60)]
    text = "select seq, id from laneway.list_flows(%s, 1, p_name => '0', p_look => 50)"
    ((stopped, found),) = db.rows(text, None)
    assert found is None
    assert db.rows(text, stopped)[0][1] == made[0]


def test_list_does_not_call_a_function_for_each_flow(db: StoreClient, edges: Edges) -> None:
    edges.flow()
    text = (
        "explain (costs off) select s.status from laneway.flows f cross join lateral"
        " laneway.flow_totals(f.seq, f.jobs, f.completed, f.failed, f.cancelled, f.ended_at) s"
    )
    plan = "\n".join(row[0] for row in db.rows(text))
    assert "flow_tallies" in plan
    assert "Function Scan" not in plan


def test_functions_stay_within_the_callers_workspaces(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow(workspace="secret")
    edges.submit(flow=flow, workspace="secret")
    db.do("set laneway.workspaces = '{default}'")
    assert db.rows("select * from laneway.list_flows(null, 10)") == []
    assert db.rows("select * from laneway.flow_states(%s)", flow) == []
    assert db.one("select cancelled from laneway.cancel_flow(%s, 'me', 'no')", flow) is None
    assert db.one("select retried from laneway.retry_flow(%s)", flow) is None
    db.do("reset laneway.workspaces")


def test_results_of_parents_come_in_the_order_of_the_submit(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(3)]
    child = edges.submit(after=[parents[2], parents[0], parents[1]], after_failure="run")
    claims = {claim.seq: claim for claim in db.claimed()}
    for seq in parents[:2]:
        db.run(leases.settle([Verdict(claims[seq], "finish", result=str(seq))]))
    db.run(leases.settle([Verdict(claims[parents[2]], "giveup", error=error())]))
    text = "select place, id, status, result from laneway.results_of(%s, %s, %s)"
    expected = [
        (1, db.id_of(parents[2]), "failed", None),
        (2, db.id_of(parents[0]), "completed", str(parents[0])),
        (3, db.id_of(parents[1]), "completed", str(parents[1])),
    ]
    assert db.rows(text, child, 0, 10) == expected
    assert db.rows(text, child, 1, 1) == expected[1:2]


def test_page_of_results_ends_where_they_are_large(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(6)]
    child = edges.submit(after=parents)
    sizes = [900_000, 900_000, 900_000, 5, 2_500_000, 5]
    for claim, size in zip(db.claimed(), sizes, strict=True):
        db.run(leases.settle([Verdict(claim, "finish", result=f'"{"x" * size}"')]))
    claim = edges.claim(child)
    pages: list[list[int]] = []
    after = 0
    while page := db.run(handler_waits.results_of(claim, after)):
        pages.append([len(row.result or "") - 2 for row in page])
        after += len(page)
    assert pages == [sizes[:3], sizes[3:5], sizes[5:]]


def test_deleted_parent_keeps_its_place_in_the_results(db: StoreClient, edges: Edges) -> None:
    parents = [edges.submit() for _ in range(3)]
    child = edges.submit(after=parents)
    edges.end(*parents)
    # As a version that did not keep them.
    db.do("delete from laneway.kept_results")
    assert len(db.rows("select * from laneway.remove_jobs(%s)", parents[:1])) == 1
    claim = edges.claim(child)
    found = db.run(handler_waits.results_of(claim, 0))
    assert [row.status for row in found] == [None, "completed", "completed"]
    assert [row.id for row in db.run(handler_waits.results_of(claim, 2))] == [found[2].id]


def test_cancelled_flow_starts_nothing_more(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    links: list[Any] = [None, {"after": [0], "after_failure": "run"}, {"after": [1]}, None]
    seqs = edges.submit_batch(links, flow=flow)
    running = edges.claim(seqs[3])
    cancelled, requested, before = 0, 0, None
    while True:
        step = db.rows(
            "select cancelled, requested, before, workers"
            " from laneway.cancel_flow(%s, 'me', 'no', 2, %s)",
            flow,
            before,
        )[0]
        cancelled, requested, before = cancelled + step[0], requested + step[1], step[2]
        if before is None:
            break
    assert (cancelled, requested) == (3, 1)
    edges.advance()
    assert db.claimed() == []
    edges.settle([running])
    assert shown(db, flow)["status"] == "cancelled"
    assert shown(db, flow)["cancelled"] == 4


def test_retried_flow_runs_its_failed_jobs_and_those_after(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    seqs = edges.submit_batch([None, None, {"after": [0, 1]}, {"after": [2]}], flow=flow)
    edges.end(seqs[0])
    edges.end(seqs[1], kind="giveup")
    assert shown(db, flow)["status"] == "failed"
    assert db.one("select retried, after, wakes from laneway.retry_flow(%s)", flow) == (
        3,
        None,
        ["t"],
    )
    assert [edges.status(seq) for seq in seqs] == ["completed", "approved", "waiting", "waiting"]
    for seq in seqs[1:]:
        edges.end(seq)
    assert shown(db, flow)["status"] == "completed"
    assert edges.are_consistent()


def test_retried_flow_waits_for_retried_parents_again(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    run = {"after_failure": "run"}
    links: list[Any] = [None, None, {"after": [0, 1], **run}, {"after": [0, 2], **run}]
    seqs = edges.submit_batch(links, flow=flow)
    edges.end(seqs[0])
    db.one("select laneway.cancel_flow(%s, 'me', 'no')", flow)
    # One batch per job: what the first ones queued again may have ended already.
    after: int | None = 0
    while after is not None:
        after = db.one("select after from laneway.retry_flow(%s, 1, %s)", flow, after)
    assert [edges.status(seq) for seq in seqs] == ["completed", "approved", "waiting", "waiting"]
    # The completed parent counts, and is not retried.
    assert [db.row("countdowns", seq)["missing"] for seq in seqs[2:]] == [1, 1]
    waits = db.one("select waits_for from laneway.jobs_view where seq = %s", seqs[2])
    assert (waits["kind"], waits["jobs"]) == ("jobs", [str(db.id_of(seqs[1]))])
    edges.end(seqs[1], kind="giveup")
    assert [edges.status(seq) for seq in seqs[2:]] == ["approved", "waiting"]
    edges.end(seqs[2])
    edges.end(seqs[3])
    assert edges.are_consistent()


def test_retried_flow_keeps_times_that_have_not_come(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    now, child = edges.submit_batch([None, {"after": [0]}], flow=flow)
    later = edges.submit(flow=flow)
    db.do("update laneway.jobs set run_at = now() + interval '1 hour' where seq <> %s", now)
    db.one("select laneway.cancel_flow(%s, 'me', 'no')", flow)
    found = db.rows("select retried, wakes from laneway.retry_flow(%s)", flow)
    assert found == [(3, ["t"])]
    edges.end(now)
    assert [db.places(seq) for seq in (child, later)] == [["delayed"], ["delayed"]]


def test_retried_flow_leaves_sub_jobs_to_their_handler(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    owner, mine, orphan = edges.submit_batch([None] * 3, flow=flow)
    done, more = edges.submit_batch([None] * 2, flow=flow)
    for sub, of in ((mine, owner), (more, done)):
        db.do("update laneway.links set owner = %s, owner_wait = 'w' where seq = %s", of, sub)
    edges.end(owner, mine, orphan, more, kind="giveup")
    edges.end(done)
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 2
    # It meets this one failed, as before.
    assert [edges.status(seq) for seq in (owner, mine)] == ["approved", "failed"]
    # The handler of the other one tolerated it, and its job has completed.
    assert [edges.status(seq) for seq in (orphan, more)] == ["approved", "failed"]
    db.retry(more)
    assert edges.status(more) == "approved"


def test_retried_flow_does_not_wait_for_jobs_that_it_leaves_alone(
    db: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    first = edges.submit(flow=flow, unique_key="k")
    child = edges.submit(flow=flow, after=[first])
    last = edges.submit(flow=flow, after=[child])
    alone = edges.submit(flow=flow, after=[first], after_failure="run")
    edges.end(first, kind="giveup")
    edges.end(alone, kind="giveup")
    holder = edges.submit(unique_key="k")
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 1
    found = [edges.status(seq) for seq in (first, child, last, alone)]
    assert found == ["failed", "cancelled", "cancelled", "approved"]
    edges.end(alone, holder)
    assert db.one("select status from laneway.list_flows(null, 1, %s)", flow) == "failed"
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 3
    found = [edges.status(seq) for seq in (first, child, last)]
    assert found == ["approved", "waiting", "waiting"]


def test_retried_flow_retries_sub_jobs_for_which_a_handler_still_waits(
    db: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    owner = edges.submit(flow=flow)
    claim = edges.claim(owner)
    write = handler_waits.submit_sub_jobs(claim, "parts", 2, 0, entries(2))
    assert db.run(write).stored == 2
    db.settle(claim, "wait", result="parts")
    failed, _ = (row[0] for row in db.rows("select seq from laneway.links where owner = %s", owner))
    db.settle(edges.claim(failed, "part"), "giveup", error=error())
    assert db.one("select retried from laneway.retry_flow(%s)", flow) == 1
    assert edges.status(failed) == "approved"
    assert db.row("countdowns", owner)["missing"] == 2


@pytest.mark.parametrize(
    "given, rule",
    [
        ({"p_name": ""}, "name"),
        ({"p_name": None}, "name"),
        ({"p_workspace": ""}, "workspace"),
        ({"p_tags": [""]}, "tags"),
        ({"p_created_by": ""}, "created_by"),
    ],
)
def test_malformed_flow_is_refused(db: StoreClient, given: dict[str, Any], rule: str) -> None:
    values = {"p_id": uuid4(), "p_name": "x", **given}
    named = ", ".join(f"{name} => %s" for name in values)
    with pytest.raises(Exception, match=f"^{rule}: "):
        db.one(f"select laneway.create_flow({named})", *values.values())


def test_id_of_a_flow_is_taken_once(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow("first")
    with pytest.raises(psycopg.Error, match=r"^id: a flow has the id") as refused:
        db.one("select laneway.create_flow(%s, 'second')", flow)
    assert refused.value.sqlstate == "LW001"
    assert db.rows("select name from laneway.list_flows(null, 1, %s)", flow) == [("first",)]


def test_later_job_of_an_ended_flow_opens_it_again(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow("nightly")
    edges.end(*edges.submit_batch([None], flow=flow))
    assert shown(db, flow)["status"] == "completed"
    later = db.one("select job_id from laneway.submit('t', flow => %s)", flow)
    found = shown(db, flow)
    assert (found["status"], found["jobs"], found["ended_at"]) == ("running", 2, None)
    edges.end(db.seq_of(later))
    found = shown(db, flow)
    assert (found["status"], found["completed"]) == ("completed", 2)
    assert found["ended_at"] is not None


def test_flow_without_jobs_ended_when_it_was_created(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow("duplicates")
    found = shown(db, flow)
    assert (found["status"], found["jobs"]) == ("completed", 0)
    assert found["ended_at"] is not None


# -- retention ------------------------------------------------------------------------------


def expire(db: StoreClient, *, days: int = 8) -> int:
    """Age all ended jobs, then let the leader delete what has expired."""
    age = "clock_timestamp() - make_interval(days => %s)"
    db.do(f"update laneway.outcome set finished_at = {age}", days)
    db.do(f"update laneway.flows set ended_at = {age} where ended_at is not null", days)
    return delete_expired(db)


def delete_expired(db: StoreClient) -> int:
    db.one("select laneway.take_leadership(%s, 600)", db.worker)
    epoch = db.one("select epoch from laneway.leader")
    text = "select removed from laneway.delete_expired(%s, %s, 1000000, '{}', '{}', 1000, 1000)"
    return int(db.one(text, db.worker, epoch))


def test_parent_is_kept_while_a_child_waits_for_it(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent], after_failure="hold")
    edges.end(parent, kind="giveup")
    assert expire(db, days=100) == 0
    assert db.rows("select * from laneway.remove_jobs(%s)", [parent]) == []
    db.cancel(child)
    assert len(db.rows("select * from laneway.remove_jobs(%s)", [parent])) == 1
    # Nothing is left to wait for.
    db.retry(child)
    assert db.places(child) == ["ready"]
    assert edges.are_consistent()


def test_completed_parent_is_kept_until_its_child_has_ended(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    edges.end(parent)
    assert expire(db) == 0
    claim = edges.claim(child)
    assert db.rows("select * from laneway.remove_jobs(%s)", [parent]) == []
    assert db.run(handler_waits.results_of(claim, 0))[0].status == "completed"
    edges.settle([claim])
    assert expire(db) == 2
    assert db.one("select count(*) from laneway.kept_results") == 0


def test_parent_in_another_flow_is_kept_until_its_child_has_ended(
    db: StoreClient, edges: Edges
) -> None:
    earlier, later = edges.flow("earlier"), edges.flow("later")
    parent = edges.submit(flow=earlier)
    first, child = edges.submit_batch([None, {"after": [0, db.id_of(parent)]}], flow=later)
    assert db.rows("select parent, child from laneway.kept_results") == [(parent, child)]
    edges.end(parent)
    fold(db)
    assert expire(db) == 0
    edges.end(first)
    edges.end(child)
    fold(db)
    # The child first: it needs its parent no more.
    assert len(db.rows("select * from laneway.remove_jobs(%s)", [child])) == 1
    assert db.one("select count(*) from laneway.kept_results") == 0
    assert expire(db) == 2


def test_job_of_a_running_flow_is_not_deleted(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    first, second = edges.submit_batch([None, {"after": [0]}], flow=flow)
    edges.end(first)
    assert db.rows("select * from laneway.remove_jobs(%s)", [first]) == []
    edges.end(second)
    assert len(db.rows("select * from laneway.remove_jobs(%s)", [first])) == 1


def test_sub_job_is_kept_while_its_owner_has_not_ended(db: StoreClient, edges: Edges) -> None:
    owner = db.running("o")
    part = edges.submit()
    db.do("insert into laneway.links (seq, owner) values (%s, %s)", part, owner.seq)
    edges.end(part)
    assert expire(db) == 0
    edges.settle([owner])
    assert expire(db) == 2
    assert db.one("select count(*) from laneway.links") == 0


def test_flow_is_kept_as_long_as_its_last_job(db: StoreClient, edges: Edges) -> None:
    flow = edges.flow()
    first, second = edges.submit_batch([None, {"after": [0]}], flow=flow)
    edges.end(first)
    fold(db)
    assert expire(db) == 0
    edges.end(second)
    fold(db)
    # Old, but the flow is not.
    assert delete_expired(db) == 0
    assert expire(db) == 2
    tables = ("jobs", "links", "flows", "flow_tallies", "open_edges", "countdowns", "kept_results")
    for table in tables:
        assert db.one(f"select count(*) from laneway.{table}") == 0


def test_deleted_child_leaves_no_edge(db: StoreClient, edges: Edges) -> None:
    parent = edges.submit()
    child = edges.submit(after=[parent])
    db.cancel(child)
    assert len(db.rows("select * from laneway.remove_jobs(%s)", [child])) == 1
    assert db.one("select count(*) from laneway.open_edges") == 0
    assert edges.end(parent) == []
    assert edges.are_consistent()


def test_deletion_of_a_flow_does_not_deadlock_with_its_sums(
    db: StoreClient, other: StoreClient, edges: Edges
) -> None:
    flow = edges.flow()
    (seq,) = edges.submit_batch([None], flow=flow)
    edges.end(seq)
    other.begin()
    # A deletion that has just locked the flow.
    other.rows("select 1 from laneway.flows where id = %s for update", flow)
    folded = db.later(lambda: fold(db))
    other.await_blocked(db)
    assert len(other.rows("select * from laneway.remove_jobs(%s)", [seq])) == 1
    other.commit()
    assert folded.result(60) > 0
    assert db.one("select count(*) from laneway.flows") == 0
    assert db.one("select count(*) from laneway.flow_tallies") == 0
