"""The end of a job submits the jobs of its end hooks, once, in the transaction that ends it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from laneway.domain.approval import Approval
from laneway.domain.claim import Claim
from laneway.domain.end_hook import EndHook
from laneway.store import caller_transaction, end_hooks, leases, retention
from laneway.store.leases import Verdict
from tests.store.approvals import analyzing, publish, reject
from tests.store.edges import Edges
from tests.store.test_retention import expire, lead, overdue
from tests.support.store_client import PLACES, StoreClient, error

APP = "shop"
HOOK = "on_end.tell"


def hook(db: StoreClient, *job_types: str, name: str = HOOK, **more: Any) -> None:
    """Publish a hook beside those of earlier calls."""
    made = EndHook(name=name, job_types=job_types or None, **more)
    db.run(end_hooks.publish({f"{APP}.{name}": [made]}))


def fired(db: StoreClient, name: str = HOOK) -> list[dict[str, Any]]:
    """The ended jobs that the hook was given, in order."""
    rows = db.rows("select payload from laneway.jobs where job_type = %s order by seq", name)
    return [payload["job"] for (payload,) in rows]


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def end(db: StoreClient, *claims: Claim, kind: str = "finish", **more: Any) -> None:
    text = None if kind == "finish" else error()
    db.run(leases.settle([Verdict(claim, kind, error=text, **more) for claim in claims]))


# -- every way to end --------------------------------------------------------------------------


def _plain(db: StoreClient) -> int:
    claim = db.running()
    end(db, claim)
    return claim.seq


def _with_key(db: StoreClient) -> int:
    claim = db.running(unique_key="k")
    end(db, claim)
    return claim.seq


def _failed(db: StoreClient) -> int:
    claim = db.running(max_retries=0)
    end(db, claim, kind="fail")
    return claim.seq


def _lost(db: StoreClient) -> int:
    claim = db.running(max_retries=0)
    end(db, claim, kind="lost")
    return claim.seq


def _cancel_obeyed(db: StoreClient) -> int:
    claim = db.running()
    db.cancel(claim.seq)
    end(db, claim)
    return claim.seq


def _analysis_failed(db: StoreClient) -> int:
    publish(db, "t", analysis=True)
    seq = db.submit()
    end(db, analyzing(db), kind="giveup")
    return seq


def _own_transaction(db: StoreClient) -> int:
    claim = db.running()
    assert db.run(caller_transaction.finish(claim, '"done"', 1.0)) == "finished"
    end(db, claim, kind="confirm")
    return claim.seq


def _cancelled_queued(db: StoreClient) -> int:
    seq = db.submit()
    db.cancel(seq)
    return seq


def _rejected(db: StoreClient) -> int:
    publish(db, "t", Approval())
    seq = db.submit()
    reject(db, seq)
    return seq


def _approval_expired(db: StoreClient) -> int:
    publish(db, "t", Approval())
    seq = db.submit()
    db.do("update laneway.awaiting set expires_at = clock_timestamp() - interval '1 s'")
    assert db.run(retention.expire_approvals(lead(db))) == 1
    return seq


def _after_failed_job(db: StoreClient) -> int:
    parent = db.running("other")
    end(db, parent, kind="giveup")
    return Edges(db).submit(after=[parent.seq])


def _parent_failed(db: StoreClient) -> int:
    edges = Edges(db)
    parent = db.submit("other")
    child = edges.submit(after=[parent])
    (claim,) = db.claimed(1, ["other"])
    end(db, claim, kind="giveup")
    edges.advance()
    return child


def _lost_state(db: StoreClient) -> int:
    seq = db.submit()
    for table in PLACES:
        db.do(f"delete from laneway.{table} where seq = %s", seq)
    assert len(db.rows("select laneway.end_lost(10)")) == 1
    return seq


def _overaged_waiting(db: StoreClient) -> int:
    seq = db.submit()
    overdue(db, seq)
    assert expire(db) == 1
    return seq


def _overaged_running(db: StoreClient) -> int:
    claim = db.running()
    overdue(db, claim.seq)
    assert expire(db) == 1
    return claim.seq


# How a job ends, the function that writes its outcome, and its status.
ENDS: dict[str, tuple[Callable[[StoreClient], int], str, str]] = {
    "plain finish": (_plain, "complete_plain", "completed"),
    "finish with a unique key": (_with_key, "settle", "completed"),
    "failure": (_failed, "settle", "failed"),
    "crash": (_lost, "settle", "failed"),
    "cancel of a running job": (_cancel_obeyed, "settle", "cancelled"),
    "failed analysis": (_analysis_failed, "settle", "failed"),
    "max_age while running": (_overaged_running, "settle", "failed"),
    "own transaction": (_own_transaction, "finish_in_transaction", "completed"),
    "cancel of a queued job": (_cancelled_queued, "end_waiting", "cancelled"),
    "rejection": (_rejected, "end_waiting", "cancelled"),
    "expired approval": (_approval_expired, "end_waiting", "cancelled"),
    "submit after a failed job": (_after_failed_job, "end_waiting", "cancelled"),
    "failure of a parent": (_parent_failed, "end_children", "cancelled"),
    "repair": (_lost_state, "end_lost", "failed"),
    "max_age while waiting": (_overaged_waiting, "expire_overaged", "failed"),
}


@pytest.mark.parametrize("way", ENDS)
def test_every_end_submits_the_hook_once_with_the_ended_job(db: StoreClient, way: str) -> None:
    end_it, _, status = ENDS[way]
    hook(db, "t")
    seq = end_it(db)
    assert db.places(seq) == ["outcome"]
    (job,) = fired(db)
    assert (job["id"], job["job_type"], job["status"]) == (str(db.id_of(seq)), "t", status)
    assert moment(job["finished_at"]) == db.row("outcome", seq)["finished_at"]
    (hook_seq,) = db.one("select array_agg(seq) from laneway.jobs where job_type = %s", HOOK)
    assert db.places(hook_seq) == ["ready"]


def test_every_function_that_writes_an_outcome_is_tested_here(db: StoreClient) -> None:
    writers = db.rows(
        "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and prosrc ~* 'into\\s+laneway\\.outcome\\M'"
    )
    assert {name for (name,) in writers} == {writer for _, writer, _ in ENDS.values()}


def test_rolled_back_end_leaves_no_hook(db: StoreClient, other: StoreClient) -> None:
    hook(db, "t")
    claim = db.running()
    other.begin()
    other.run(leases.settle([Verdict(claim, "finish")]))
    assert len(fired(other)) == 1
    other.rollback()
    assert fired(db) == []
    end(db, claim)
    assert len(fired(db)) == 1


def test_second_report_of_an_end_submits_nothing(db: StoreClient) -> None:
    hook(db, "t")
    claim = db.running()
    for _ in range(2):
        end(db, claim)
    stale = db.running(max_retries=0)
    end(db, stale, kind="lost")
    end(db, stale)
    assert [job["status"] for job in fired(db)] == ["completed", "failed"]


def test_attempt_that_is_retried_submits_nothing(db: StoreClient) -> None:
    hook(db, "t")
    claim = db.running(max_retries=1)
    end(db, claim, kind="fail", delay_s=0)
    end(db, db.claimed(1)[0], kind="snooze", delay_s=0)
    assert fired(db) == []
    db.make_due()
    end(db, db.claimed(1)[0], kind="fail")
    (job,) = fired(db)
    assert (job["attempt"], job["retries"], job["status"]) == (3, 1, "failed")


def test_job_that_an_operator_retried_ends_again(db: StoreClient) -> None:
    hook(db, "t")
    claim = db.running()
    end(db, claim, kind="giveup")
    db.retry(claim.seq)
    end(db, db.claimed(1)[0])
    assert [(job["attempt"], job["status"]) for job in fired(db)] == [
        (1, "failed"), (2, "completed"),
    ]  # fmt: skip


def test_two_repairs_at_once_end_a_lost_job_once(db: StoreClient, other: StoreClient) -> None:
    hook(db, "t")
    seq = db.submit()
    db.do("delete from laneway.ready where seq = %s", seq)
    db.begin()
    assert len(db.rows("select laneway.end_lost(10)")) == 1
    second = other.later(lambda: other.rows("select laneway.end_lost(10)"))
    db.await_blocked(other)
    db.commit()
    assert second.result() == []
    assert len(fired(db)) == 1


# -- which ends --------------------------------------------------------------------------------


def test_hook_matches_by_type_status_and_workspace(db: StoreClient) -> None:
    hook(db, "t", statuses=("failed",), name="on_end.failed")
    hook(db, "t", "u", workspaces=("north",), name="on_end.north")
    hook(db, name="on_end.all")
    for job_type, kind, workspace in (
        ("t", "finish", "default"), ("t", "giveup", "default"), ("u", "finish", "north"),
    ):  # fmt: skip
        end(db, db.running(job_type, workspace=workspace), kind=kind)
    found = {
        name: [(job["job_type"], job["status"]) for job in fired(db, f"on_end.{name}")]
        for name in ("failed", "north", "all")
    }
    assert found == {
        "failed": [("t", "failed")],
        "north": [("u", "completed")],
        "all": [("t", "completed"), ("t", "failed"), ("u", "completed")],
    }
    spaces = "select distinct workspace from laneway.jobs where job_type = 'on_end.north'"
    assert db.rows(spaces) == [("north",)]


def test_batch_of_ends_submits_a_hook_for_each(db: StoreClient) -> None:
    hook(db, "t", statuses=("completed",))
    seqs = [db.submit() for _ in range(1200)]
    end(db, *db.claimed(1200))
    assert [job["id"] for job in fired(db)] == [str(db.id_of(seq)) for seq in seqs]


def test_settle_names_the_types_to_wake(db: StoreClient) -> None:
    hook(db, "t")
    answers = db.settled(db.running(), "finish")
    assert [(one.answer, one.status) for one in answers] == [("promoted", HOOK)]


def test_ends_of_hooks_submit_no_hooks_unless_named_and_never_in_circles(db: StoreClient) -> None:
    hook(db, name="on_end.all")
    hook(db, "on_end.all", name="on_end.second")
    hook(db, "on_end.second", name="on_end.third")
    end(db, db.running())
    end(db, *db.claimed(10, ["on_end.all"]))
    assert len(fired(db, "on_end.all")) == 1
    (job,) = fired(db, "on_end.second")
    assert job["job_type"] == "on_end.all"
    end(db, *db.claimed(10, ["on_end.second"]))
    assert fired(db, "on_end.third") == []


def test_hook_of_another_type_is_not_read_for_plain_ends(db: StoreClient) -> None:
    hook(db, "other")
    hook(db, "t", statuses=("failed", "cancelled"), name="on_end.failed")
    claims = [db.running() for _ in range(3)]
    read = "select idx_scan from pg_stat_xact_user_tables where relname = 'jobs'"
    db.begin()
    before = db.one(read)
    end(db, *claims)
    assert db.one(read) == before
    db.commit()


# -- what the hook is given ----------------------------------------------------------------------


def test_hook_gets_what_every_reader_of_the_job_may_see(db: StoreClient) -> None:
    hook(db, "t")
    claim = db.running(
        payload={"path": "a.pdf"}, tags=("red",), created_by="ann", priority=7, max_retries=0,
        traceparent="00-a-b-01",
    )  # fmt: skip
    end(db, claim, kind="giveup", result='{"pages": 3}')
    (job,) = fired(db)
    row = db.row("outcome", claim.seq)
    created = db.one("select created_at from laneway.jobs where seq = %s", claim.seq)
    times = {name: moment(job[name]) for name in ("created_at", "started_at", "finished_at")}
    assert {**job, **times} == {
        "id": str(claim.job_id), "job_type": "t", "status": "failed", "workspace": "default",
        "lane": "default", "priority": 7, "attempt": 1, "retries": 0, "max_retries": 0,
        "tags": ["red"], "flow": None, "created_at": created, "created_by": "ann",
        "started_at": row["started_at"], "finished_at": row["finished_at"], "cancel_reason": None,
        "cancelled_by": None,
        "error": {"type": "Boom", "message": None}, "payload": {"path": "a.pdf"},
        "result": {"pages": 3}, "omitted": [],
    }  # fmt: skip
    stored = "select created_by, traceparent, payload ? 'job' from laneway.jobs where job_type = %s"
    assert db.one(stored, HOOK) == ("laneway", "00-a-b-01", True)


def test_hook_gets_a_public_message_and_the_flow(db: StoreClient) -> None:
    hook(db, "t")
    flow = Edges(db).flow()
    db.one("select job_id from laneway.submit('t', flow => %s)", flow)
    text = json.dumps({"type": "Broken", "message": "no such page", "public": True})
    db.run(leases.settle([Verdict(db.claimed(1)[0], "giveup", error=text)]))
    (job,) = fired(db)
    assert job["error"] == {"type": "Broken", "message": "no such page"}
    assert job["flow"] == str(flow)


def test_large_and_deep_values_are_omitted(db: StoreClient) -> None:
    hook(db, "t")
    deep = json.loads("[" * 63 + "]" * 63)
    big = "x" * 40_000
    end(db, db.running(payload={"text": big}), result=json.dumps(big))
    end(db, db.running(payload={"deep": deep}), result='"small"')
    large, nested = fired(db)
    assert (large["payload"], large["result"]) == (None, None)
    assert large["omitted"] == ["payload", "result"]
    assert (nested["payload"], nested["result"], nested["omitted"]) == (None, "small", ["payload"])


def test_policy_of_the_hooks_type_applies_except_uniqueness(db: StoreClient) -> None:
    publish(db, HOOK, Approval(), max_retries=9, priority=4, unique_for_s=60.0, max_age_s=60.0)
    hook(db, "t")
    end(db, db.running(), db.running())
    rows = db.rows(
        "select v.status, j.max_retries, j.priority, j.unique_key from laneway.jobs j"
        " join laneway.jobs_view v using (seq) where j.job_type = %s", HOOK,
    )  # fmt: skip
    assert rows == [("awaiting_approval", 9, 4, None)] * 2
    assert db.one("select count(*) from laneway.deadlines") == 2


def test_session_bound_to_a_workspace_ends_jobs_of_others(db: StoreClient) -> None:
    hook(db, "t")
    edges = Edges(db)
    parent = db.submit("other", workspace="south")
    child = edges.submit(after=[parent], workspace="south")
    (claim,) = db.claimed(1, ["other"])
    end(db, claim, kind="giveup")
    db.do("set laneway.workspaces = '{north}'")
    try:
        edges.advance()
    finally:
        db.do("reset laneway.workspaces")
    assert db.places(child) == ["outcome"]
    assert [job["workspace"] for job in fired(db)] == ["south"]


# -- publication -------------------------------------------------------------------------------


def published(db: StoreClient) -> dict[str, Any]:
    rows = db.rows("select name, application, job_types, statuses from laneway.end_hooks")
    return {name: tuple(rest) for name, *rest in rows}


def test_newest_publication_counts_and_names_the_other(db: StoreClient) -> None:
    first, second = (EndHook(name=HOOK, job_types=(one,)) for one in "ab")
    assert db.run(end_hooks.publish({"shop": [first]})) == []
    assert db.run(end_hooks.publish({"bills": [first]})) == []
    assert db.run(end_hooks.publish({"shop": [second]})) == [(HOOK, "bills")]
    assert published(db) == {HOOK: ("shop", ["b"], ["completed", "failed", "cancelled"])}


def test_hook_that_the_code_no_longer_has_is_deleted(db: StoreClient) -> None:
    gone, kept = EndHook(name="on_end.gone"), EndHook(name="on_end.kept")
    db.run(end_hooks.publish({"shop": [gone, kept], "bills": [EndHook(name="on_end.bill")]}))
    db.run(end_hooks.publish({"shop": [kept]}))
    assert published(db).keys() == {"on_end.kept", "on_end.bill"}


def test_hook_that_a_live_worker_handles_is_kept(db: StoreClient) -> None:
    db.run(end_hooks.publish({"shop": [EndHook(name=HOOK)]}))
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency, seen_at)"
        " values (gen_random_uuid(), 'w', 'h', 1, '', array[%s], 1, %s)",
        HOOK, datetime.now(UTC),
    )  # fmt: skip
    db.run(end_hooks.publish({"shop": []}))
    assert published(db).keys() == {HOOK}
    db.do("update laneway.workers set stopped_at = clock_timestamp()")
    db.run(end_hooks.publish({"shop": []}))
    assert published(db) == {}
