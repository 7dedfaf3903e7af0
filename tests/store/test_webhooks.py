"""Which ends submit deliveries to webhooks, what they hold, and who may read webhooks."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import errors

from laneway.domain.webhook import WEBHOOK_TYPE, Webhook, new_secret
from laneway.store import webhooks
from laneway.store.grants import grants
from tests.store.edges import Edges
from tests.store.test_end_hooks import end, fired, hook
from tests.support.store_client import StoreClient

ROLE = "webhook_tester"
DELIVERIES = (
    "select j.payload ->> 'webhook', j.payload #>> '{job,job_type}', j.payload #>> '{job,status}'"
    " from laneway.jobs j where j.job_type = 'laneway.webhook' order by j.seq"
)


def create(db: StoreClient, name: str = "erp", **settings: Any) -> str:
    secret = new_secret()
    made = Webhook(name, "https://example.com/", **settings)
    assert db.run(webhooks.create(made, secret, "ann"))
    return secret


def test_end_submits_a_delivery_with_what_hooks_get(db: StoreClient) -> None:
    create(db, max_retries=7)
    hook(db, "t")
    claim = db.running(tags=("red",), workspace="north", traceparent="00-a-b-01")
    end(db, claim, kind="giveup")
    (ended,) = fired(db)
    stored = (
        "select payload, workspace, tags, created_by, max_retries, traceparent, unique_key"
        " from laneway.jobs where job_type = %s"
    )
    assert db.one(stored, WEBHOOK_TYPE) == (
        {"webhook": "erp", "job": ended}, "north",
        ["webhook:erp", f"webhook_id:{target(db).id}"], "laneway", 7, "00-a-b-01", None,
    )  # fmt: skip
    assert ended["error"] == {"type": "Boom", "message": None}


def test_webhook_matches_by_event_type_workspace_lane_and_tag(db: StoreClient) -> None:
    db.do("insert into laneway.worker_lanes (name, job_types) values ('big', '{b}')")
    create(db, "all")
    create(db, "failed", events=("job.failed", "job.cancelled"))
    create(db, "types", job_types=("b", "c"))
    create(db, "north", workspaces=("north",))
    create(db, "lane", lanes=("big", "small"))
    create(db, "tags", tags=("red", "blue"))
    create(db, "off", enabled=False)
    db.cancel(db.submit("b"))
    end(db, db.running("b", workspace="north"))
    end(db, db.running("t", tags=("green", "blue")), kind="giveup")
    found: dict[str, list[Any]] = {}
    for name, job_type, status in db.rows(DELIVERIES):
        found.setdefault(name, []).append((job_type, status))
    assert found == {
        "all": [("b", "cancelled"), ("b", "completed"), ("t", "failed")],
        "failed": [("b", "cancelled"), ("t", "failed")],
        "types": [("b", "cancelled"), ("b", "completed")],
        "north": [("b", "completed")],
        "lane": [("b", "cancelled"), ("b", "completed")],
        "tags": [("t", "failed")],
    }


def test_change_counts_for_the_next_end(db: StoreClient) -> None:
    create(db)
    for change in ({"enabled": False}, {"events": ("job.failed",)}, {"enabled": True}):
        assert db.run(webhooks.change("erp", change, "ann"))
        end(db, db.running("a"))
    end(db, db.running("b"), kind="giveup")
    assert db.run(webhooks.delete("erp"))
    end(db, db.running("c"), kind="giveup")
    assert db.rows(DELIVERIES) == [("erp", "b", "failed")]
    assert db.rows("select 1 from laneway.end_hooks") == []


def test_ends_of_deliveries_are_delivered_only_if_named_and_never_in_circles(
    db: StoreClient,
) -> None:
    create(db, "all")
    create(db, "watcher", job_types=(WEBHOOK_TYPE,))
    hook(db, "t")
    end(db, db.running("t"))
    assert db.rows(DELIVERIES) == [("all", "t", "completed")]
    end(db, *db.claimed(10, [WEBHOOK_TYPE]), kind="giveup")
    end(db, *db.claimed(10, ["on_end.tell"]))
    assert db.rows(DELIVERIES)[1:] == [("watcher", WEBHOOK_TYPE, "failed")]
    end(db, *db.claimed(10, [WEBHOOK_TYPE]), kind="giveup")
    assert len(db.rows(DELIVERIES)) == 2


def test_publications_leave_webhooks_alone(db: StoreClient) -> None:
    create(db)
    hook(db, "t")
    db.do("delete from laneway.end_hooks where application <> ''")
    hook(db, "t", name="on_end.other")
    assert db.rows("select webhook from laneway.end_hooks order by webhook") == [("erp",), (None,)]


def test_rolled_back_end_leaves_no_delivery(db: StoreClient) -> None:
    create(db)
    claim = db.running()
    db.begin()
    end(db, claim)
    assert len(db.rows(DELIVERIES)) == 1
    db.rollback()
    assert db.rows(DELIVERIES) == []


def test_ends_of_others_are_not_read_for_a_webhook_of_one_type(db: StoreClient) -> None:
    create(db, job_types=("other",))
    claims = [db.running() for _ in range(3)]
    read = "select idx_scan from pg_stat_xact_user_tables where relname = 'jobs'"
    db.begin()
    before = db.one(read)
    end(db, *claims)
    assert db.one(read) == before
    db.commit()


def test_children_cancelled_by_a_failed_parent_are_delivered(db: StoreClient) -> None:
    create(db, job_types=("t",))
    edges = Edges(db)
    parent = db.submit("other")
    edges.submit(after=[parent])
    (claim,) = db.claimed(1, ["other"])
    end(db, claim, kind="giveup")
    edges.advance()
    assert db.rows(DELIVERIES) == [("erp", "t", "cancelled")]


# -- secrets -----------------------------------------------------------------------------------


def target(db: StoreClient) -> webhooks.Target:
    found = db.run(webhooks.target("erp"))
    assert found is not None
    return found


def test_old_secret_signs_until_its_day_is_over(db: StoreClient) -> None:
    first, second, third = create(db), new_secret(), new_secret()
    assert target(db).secrets == [first]
    db.run(webhooks.change("erp", {"secret": second}, "ann"))
    assert target(db).secrets == [second, first]
    db.run(webhooks.change("erp", {"secret": third}, "ann"))
    assert target(db).secrets == [third, second]
    (shown,) = db.run(webhooks.read("erp"))
    assert shown.previous_secret_until is not None
    db.do("update laneway.webhooks set previous_until = clock_timestamp()")
    assert target(db).secrets == [third]
    assert db.run(webhooks.read("erp"))[0].previous_secret_until is None
    assert third not in repr(target(db))


@pytest.mark.parametrize("role", ["reader", "client", "approver", "handler"])
def test_roles_that_neither_manage_nor_deliver_cannot_read_webhooks(
    db: StoreClient, role: str
) -> None:
    create(db)
    db.begin()
    try:
        db.do(f"create role {ROLE} nologin")
        db.do(grants([role], ROLE, "no_owner"))
        db.do(f"set local role {ROLE}")
        with pytest.raises(errors.InsufficientPrivilege):
            db.rows("select secret from laneway.webhooks")
    finally:
        db.rollback()


@pytest.mark.parametrize(
    "forgery",
    [
        "select laneway.submit('laneway.webhook', {job}, created_by => 'laneway')",
        (
            "select laneway.submit_batch(array[gen_random_uuid()], jsonb_build_array({job}),"
            """ '{{0}}', '[{{"job_type": "laneway.webhook", "created_by": "laneway"}}]')"""
        ),
    ],
)
@pytest.mark.parametrize("role", ["client", "submitter"])
def test_login_that_submits_cannot_submit_a_delivery(
    db: StoreClient, role: str, forgery: str
) -> None:
    create(db)
    job = """'{"webhook": "erp", "job": {"status": "completed", "finished_at": "now"}}'::jsonb"""
    db.begin()
    try:
        db.do(f"create role {ROLE} nologin")
        if role == "client":
            db.do(grants([role], ROLE, "no_owner"))
        else:
            # As documented for triggers and programs in other languages.
            db.do(f"grant usage on schema laneway to {ROLE}")
            db.do(f"grant execute on all functions in schema laneway to {ROLE}")
            db.do(f"revoke execute on function laneway.store_batch from {ROLE}")
        db.do(f"set local role {ROLE}")
        with pytest.raises(errors.DatabaseError, match="only the end of a job submits deliveries"):
            db.do(forgery.format(job=job))
    finally:
        db.rollback()


def test_client_that_cancels_a_job_still_submits_its_delivery(db: StoreClient) -> None:
    create(db)
    number = db.submit("b")
    db.begin()
    try:
        db.do(f"create role {ROLE} nologin")
        db.do(grants(["client"], ROLE, "no_owner"))
        db.do(f"set local role {ROLE}")
        db.do("select laneway.cancel(%s, 'me', null)", number)
        db.do("reset role")
        assert db.rows(DELIVERIES) == [("erp", "b", "cancelled")]
    finally:
        db.rollback()
